package broker

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/running/toolcall"
	"mailboxd/internal/stores/dirtree"
)

// maxLines limits the lines of a record, so that refused calls don't fill the disk.
const maxLines = 10_000

// A record writes what happens to the run directory. It isn't synced: a power cut ends the run, too.
type record struct {
	mu     sync.Mutex // guards the fields below
	file   *os.File
	bodies *os.File
	lines  int
	calls  int
}

func (r *record) open(dir string) (err error) {
	if r.file, err = openLines(dir, CallsFile); err != nil {
		return err
	}
	if r.bodies, err = openLines(dir, BodiesFile); err != nil {
		return err
	}
	return r.continues()
}

// continues counts the lines and the calls of an earlier broker of the run.
func (r *record) continues() error {
	in := bufio.NewReader(r.file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.lines++; bytes.HasPrefix(line, []byte(`{"sent"`)) {
			r.calls++
		}
	}
}

func openLines(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}

func (r *record) close() {
	_ = r.file.Close() // each line is written
	_ = r.bodies.Close()
}

// count counts a call, and reports whether there may be one.
func (r *record) count(limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return r.calls <= limit
}

// line appends a line in one write, so that a reader sees whole ones.
func (r *record) line(what string, value any) error {
	text, err := json.Marshal(map[string]any{what: value})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines++; r.lines > maxLines {
		return fmt.Errorf("the record of the run has %d lines already", maxLines)
	}
	_, err = r.file.Write(append(text, '\n'))
	return err
}

// A body is a line with the arguments of a call, or with its result, as texts: their digests are recorded.
// All are in one file, since a new file for each takes longer than a call.
type body struct {
	ID        string `json:"id"`
	Arguments string `json:"arguments,omitzero"`
	Result    string `json:"result,omitzero"`
}

// keep appends a body in one write.
func (r *record) keep(b body) error {
	text, err := json.Marshal(b, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.bodies.Write(append(text, '\n'))
	return err
}

// Result returns the result of a call from a BodiesFile, as JSON; nil if it isn't there.
func Result(bodies io.Reader, id string) ([]byte, error) {
	in := bufio.NewReader(bodies)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var b body
		if json.Unmarshal(line, &b) == nil && b.ID == id && b.Result != "" {
			return []byte(b.Result), nil
		}
	}
}

// answers are those to the questions of the broker.
type answers struct{ path string }

// lookInterval is the time between two looks for the answer of a person.
const lookInterval = 100 * time.Millisecond

// await waits for the answer to a question.
func (a answers) await(ctx context.Context, id string) (toolcall.Answer, error) {
	timer := time.NewTicker(lookInterval)
	defer timer.Stop()
	for {
		text, err := os.ReadFile(a.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return toolcall.Answer{}, err
		}
		for line := range strings.Lines(string(text)) {
			var answer toolcall.Answer
			if json.Unmarshal([]byte(line), &answer) == nil && answer.ID == id {
				return answer, nil
			}
		}
		select {
		case <-ctx.Done():
			return toolcall.Answer{}, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// known remembers the digests of tools across runs: the first one counts, until a person approves
// another one. Each tool has a file.
type known struct {
	dir string

	mu   sync.Mutex        // guards seen
	seen map[string]string // the changed digest that was recorded last, by tool
}

// A knownTool is what is remembered of a tool.
type knownTool struct {
	Tool   string    `json:"tool"`
	SHA256 string    `json:"sha256"`
	Since  time.Time `json:"since"`
}

func (k *known) file(tool string) string {
	sum := sha256.Sum256([]byte(tool))
	return filepath.Join(k.dir, hex.EncodeToString(sum[:])+".json")
}

// check compares the digest of a tool with the one that was used before, and reports also whether a
// change is seen for the first time. What can't be read counts as a change.
func (k *known) check(tool, digest string) (changed, isNew bool) {
	if k.dir == "" {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var before knownTool
	text, err := os.ReadFile(k.file(tool))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = k.put(tool, digest)
		before.SHA256 = digest
	case err == nil:
		err = json.Unmarshal(text, &before)
	}
	if err == nil && before.SHA256 == digest {
		return false, false
	}
	if k.seen == nil {
		k.seen = map[string]string{}
	}
	isNew = k.seen[tool] != digest
	k.seen[tool] = digest
	return true, isNew
}

// Known returns the digests of the tools in a list that a directory remembers, by server/tool; nil for none.
func Known(dir string, tools []string) map[string]string {
	if !slices.ContainsFunc(tools, func(entry string) bool { server, _ := policy.MCPServer(entry); return server != "" }) {
		return nil
	}
	all := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, path := range files {
		var k knownTool
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &k) == nil && policy.ListsMCP(tools, k.Tool) {
			all[k.Tool] = k.SHA256
		}
	}
	return all
}

// accept remembers a definition that a person approved.
func (k *known) accept(tool, digest string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.put(tool, digest)
}

func (k *known) put(tool, digest string) error {
	text, err := json.Marshal(knownTool{tool, digest, time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return dirtree.WriteFile(k.file(tool), append(text, '\n'))
}
