package realagents_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// nodeBox makes a box whose programs speak A2A by the npm SDK.
func nodeBox(t *testing.T) *box {
	t.Helper()
	b := emptyBox(t, program{name: "node", login: func(*box) []string { return nil }}, fakemodel.Start)
	for _, name := range []string{"agent.mjs", "client.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "a2a", name))
		if err != nil {
			t.Fatal(err)
		}
		b.write("a2a/"+name, string(text))
	}
	if err := os.Symlink(filepath.Join(programs(), "node_modules"), filepath.Join(b.home, "a2a", "node_modules")); err != nil {
		t.Fatal(err)
	}
	return b
}

// A nodeAgent is a process of the agent of testdata/a2a.
type nodeAgent struct {
	t     *testing.T
	url   string
	lines chan string // what it prints behind its address
}

// An arrival is what the agent got.
type arrival struct {
	Got       string `json:"got"`
	MessageID string `json:"messageId"`
	ContextID string `json:"contextId"`
	TaskID    string `json:"taskId"`
	Words     string `json:"words"`
}

// startAgent starts the agent with a protocol binding and variables. It is killed at the end of the test.
func (b *box) startAgent(t *testing.T, binding string, env ...string) *nodeAgent {
	t.Helper()
	a := &nodeAgent{t: t, lines: make(chan string, 1000)}
	cmd := exec.Command(node(), "agent.mjs", binding)
	cmd.Dir, cmd.Env = filepath.Join(b.home, "a2a"), slices.Concat(b.env, env)
	cmd.Stdout, cmd.Stderr = &lineWriter{lines: a.lines}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	a.url = a.next()
	return a
}

// A lineWriter sends each line that is written to a channel.
type lineWriter struct {
	part  []byte // of a line
	lines chan<- string
}

// Write sends the lines that are complete.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		line, rest, found := bytes.Cut(w.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.lines <- string(line)
		w.part = rest
	}
}

// next returns the next line that the agent prints.
func (a *nodeAgent) next() string {
	a.t.Helper()
	select {
	case line := <-a.lines:
		return line
	case <-time.After(patience):
		a.t.Fatalf("the agent printed nothing in %v", patience)
	}
	return ""
}

// arrived returns what the agent got next.
func (a *nodeAgent) arrived() (got arrival) {
	a.t.Helper()
	line := a.next()
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		a.t.Fatalf("the agent printed %q: %v", line, err)
	}
	return got
}

// client runs the client of testdata/a2a, and returns the lines that it prints.
func (b *box) client(token, url, binding string, args ...string) (lines []string, ok bool) {
	b.t.Helper()
	own := *b
	own.env = slices.Concat(b.env, []string{"A2A_TOKEN=" + token})
	s := own.run(filepath.Join(b.home, "a2a"), node(), append([]string{"client.mjs", url, binding}, args...)...)
	if s.err != "" {
		b.t.Logf("the client wrote to its standard error:\n%s", s.err)
	}
	return strings.Split(strings.TrimSpace(s.out), "\n"), s.code == 0
}
