package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// sendLong appends a request of about so many bytes to box/tasks/long.jsonl, with
// its keys sorted as AINL's adapter sorts them, so that task_id comes after input:
// longline ID BYTES [first|second|third]. With a word it appends that third of the
// line; the newline ends the last one.
func sendLong(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: longline id bytes [first|second|third]")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	line := sortedLine(args[0], "worker", size) + "\n"
	if len(args) == 3 {
		part := slices.Index([]string{"first", "second", "third"}, args[2])
		third := len(line) / 3
		line = []string{line[:third], line[third : 2*third], line[2*third:]}[part]
	}
	appendTo(ts, "box/tasks/long.jsonl", line)
}

// sortedLine is a request with sorted keys, whose payload has so many bytes.
func sortedLine(id, agent string, size int) string {
	return `{"description":"a task","input":{"payload":{"x":"` + strings.Repeat("x", size) + `"},"refs":[]},"requester_id":"tester",` +
		`"schema_version":"1.0","target_agent":"` + agent + `","target_role":"executor","task_id":"` + id + `","task_type":"work"}`
}

func TestAnEditorIsToldThatATaskIsTooLongAndNothingIsSent(t *testing.T) {
	m := newManager(t)
	m.configure("intake: {max_line_bytes: 2048}\nagents: [{id: worker, exec: {command: [agent, ok]}}]\n")
	e := m.editor(protocols[0])
	var sent struct {
		TaskID string `json:"task_id"`
	}
	err := e.ask("send_task", fmt.Sprintf(`{"target_agent":"worker","task_type":"work","description":"d","payload":{"x":"%02100d"}}`, 0), &sent)
	if err == nil || !strings.Contains(err.Error(), "more than the 2048 of intake.max_line_bytes") {
		t.Errorf("send_task = %v; want it refused for its length", err)
	}
	file := filepath.Join(m.dir, "box", "tasks", "mailboxd.jsonl")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the task file: %v; want none", err)
	}
	e.must("send_task", `{"target_agent":"worker","task_type":"work","description":"d","task_id":"short"}`, &sent)
	if line, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(line), `{"task_id":"short",`) {
		t.Errorf("the line is %s, %v; want it to begin with its task_id", line, err)
	}
}
