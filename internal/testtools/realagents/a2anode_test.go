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

// A printer is a process whose output a test reads line by line.
type printer struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

// start starts a program in the directory of the programs of testdata/a2a. It is killed at the end of the test.
func (b *box) start(t *testing.T, env []string, program string, args ...string) *printer {
	t.Helper()
	p := &printer{t: t, cmd: exec.Command(program, args...), lines: make(chan string, 1000)}
	p.cmd.Dir, p.cmd.Env = filepath.Join(b.home, "a2a"), slices.Concat(b.env, env)
	p.cmd.Stdout, p.cmd.Stderr = &lineWriter{lines: p.lines}, os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed
	})
	return p
}

// next returns the next line that the process prints.
func (p *printer) next() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(patience):
		p.t.Fatalf("%s printed nothing more in %v", p.cmd, patience)
	}
	return ""
}

// A nodeAgent is a process of the agent of testdata/a2a.
type nodeAgent struct {
	*printer
	url string
}

// An arrival is what the agent got.
type arrival struct {
	Got       string `json:"got"`
	MessageID string `json:"messageId"`
	ContextID string `json:"contextId"`
	TaskID    string `json:"taskId"`
	Words     string `json:"words"`
}

// startAgent starts the agent with a protocol binding and variables.
func (b *box) startAgent(t *testing.T, binding string, env ...string) *nodeAgent {
	t.Helper()
	a := &nodeAgent{printer: b.start(t, env, node(), "agent.mjs", binding)}
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

// arrived returns what the agent got next.
func (a *nodeAgent) arrived() (got arrival) {
	a.t.Helper()
	line := a.next()
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		a.t.Fatalf("the agent printed %q: %v", line, err)
	}
	return got
}

// until runs a command of mailboxd until it prints a text.
func (b *box) until(want string, args ...string) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(b.mailboxd(b.work, args...).out, want) {
			return
		}
	}
	b.t.Fatalf("mailboxd %s didn't print %s in %v", strings.Join(args, " "), want, patience)
}
