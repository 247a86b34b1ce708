// Package compose makes a request of words or of an earlier request, and lets a person edit it. It
// sends nothing.
package compose

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
)

// Request returns the request of a task, which must be one of AINL that the ledger still has.
func Request(t client.TaskDetails) ([]byte, error) {
	switch {
	case t.Task.Dialect != "":
		return nil, exit.With(exit.Usage, "task %s was requested in %s, and only requests of AINL can be copied or edited; send the message again", t.Task.ID, t.Task.Dialect)
	case len(t.Request) == 0:
		return nil, exit.With(exit.NoTask, "the request of %s is too old to be kept; see retention.ledger", t.Task.ID)
	}
	return t.Request, nil
}

// Copy returns a request like an earlier one, with another id and requester. A deadline that has
// passed and the parent task are left out; left names them.
func Copy(request []byte, id envelope.ID, requester string, now time.Time) (line []byte, left []string, err error) {
	members, err := membersOf(request)
	if err != nil {
		return nil, nil, err
	}
	t, _ := envelope.DecodeTask(request, envelope.Legacy)
	if !t.Deadline.IsZero() && t.Deadline.Before(now) {
		delete(members, "deadline")
		left = append(left, "its deadline, which has passed")
	}
	if metadata, ok := members["metadata"].(map[string]any); ok && metadata[envelope.ParentTask] != nil {
		delete(metadata, envelope.ParentTask)
		left = append(left, "its parent task")
	}
	members["task_id"], members["requester_id"] = string(id), requester
	line, err = envelope.RequestLine(members)
	return line, left, err
}

// membersOf returns the members of a request. Numbers keep their digits.
func membersOf(request []byte) (map[string]any, error) {
	raw := map[string]jsontext.Value{}
	if err := json.Unmarshal(request, &raw); err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	members := make(map[string]any, len(raw))
	for name, value := range raw {
		members[name] = value
	}
	if raw["metadata"].Kind() == '{' {
		metadata := map[string]jsontext.Value{}
		if err := json.Unmarshal(raw["metadata"], &metadata); err != nil {
			return nil, fmt.Errorf("read metadata: %w", err)
		}
		all := make(map[string]any, len(metadata))
		for name, value := range metadata {
			all[name] = value
		}
		members["metadata"] = all
	}
	return members, nil
}

// An Editor lets a person edit requests.
type Editor struct {
	Command  string // in the shell's words; the name of a file is added
	In       io.Reader
	Out, Err io.Writer

	NearMisses envelope.Mode // whether a field that is nearly a control is an error
}

// Edit opens a request in the editor, and returns it as one line, or nil if it was not changed. A
// request that no daemon would take is an error, which names the file with the person's text.
func (e Editor) Edit(ctx context.Context, request []byte) ([]byte, error) {
	before := jsontext.Value(bytes.Clone(request))
	if err := before.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	path, err := write(append(before, '\n'))
	if err != nil {
		return nil, err
	}
	after, err := e.open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w; your text is in %s", err, path)
	}
	if bytes.Equal(bytes.TrimSpace(after), before) {
		return nil, os.Remove(path)
	}
	line, err := requestOf(after, request, e.NearMisses)
	if err != nil {
		return nil, exit.With(exit.Usage, "%w; your text is in %s", err, path)
	}
	return line, os.Remove(path)
}

// write writes a new file that only its user can read.
func write(text []byte) (path string, err error) {
	file, err := os.CreateTemp("", "mailboxd-*.json")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return file.Name(), err
}

// open runs the editor and returns what the file has after it.
func (e Editor) open(ctx context.Context, path string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", e.Command+` "$1"`, "editor", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out, e.Err
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run editor %s: %w", e.Command, err)
	}
	return os.ReadFile(path)
}

// requestOf returns an edited request as one line. Its role may be that of the earlier request,
// which its agent may name in its manifest. The mode is that of near misses.
func requestOf(text, earlier []byte, nearMisses envelope.Mode) ([]byte, error) {
	members, err := membersOf(text)
	if err != nil {
		return nil, err
	}
	line, err := envelope.RequestLine(members)
	if err != nil {
		return nil, err
	}
	before, _ := envelope.DecodeTask(earlier, envelope.Legacy)
	return line, reader.CheckRequest(line, append(slices.Clone(reader.Roles), before.Role), nearMisses)
}
