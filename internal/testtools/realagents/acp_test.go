package realagents_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json"
)

// acpCommands are the commands of the programs that speak ACP, and the mode in which they ask.
var acpCommands = map[string]struct {
	command []string
	mode    string
	env     []string
}{
	"claude": {[]string{"claude-agent-acp"}, "default", []string{"IS_SANDBOX=1"}},
	"codex":  {[]string{"codex-acp"}, "read-only", nil},
	"gemini": {[]string{"gemini", "--acp"}, "default", []string{"GEMINI_CLI_TRUST_WORKSPACE=false"}},
	"opencode": {[]string{"opencode", "acp"}, "mailboxd", []string{
		`OPENCODE_CONFIG_CONTENT={"agent":{"mailboxd":{"mode":"primary","permission":{"*":"ask"}}}}`,
	}},
}

// A hosted is what a host printed, and what it asked.
type hosted struct {
	Status  string `json:"status"`
	Text    string `json:"text"`
	Session string `json:"session_id"`
	Tokens  int64  `json:"tokens"`
	Error   struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`

	asked, called []askedCall
	out           string
}

type askedCall struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Command string   `json:"command"`
	Paths   []string `json:"paths"`
	Diff    string   `json:"diff"`
}

// host runs a host with the box's program, and answers each question with a decision.
func (b *box) host(prompt, decision, resume string) (h hosted) {
	b.t.Helper()
	p := acpCommands[b.program.name]
	program := p.command[0]
	if !filepath.IsAbs(program) {
		program = filepath.Join(programs(), "node_modules", ".bin", program)
	}
	if _, err := os.Stat(program); err != nil {
		b.t.Skip(err)
	}
	args := []string{"acp-host", "--mode", p.mode}
	if resume != "" {
		args = append(args, "--resume", resume)
	}
	cmd := exec.CommandContext(b.t.Context(), os.Getenv(daemonVariable), append(append(args, "--", program), p.command[1:]...)...)
	progress, answers := filepath.Join(b.home, "progress.jsonl"), filepath.Join(b.home, "answers.jsonl")
	for _, path := range []string{progress, answers} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	cmd.Dir = b.work
	cmd.Env = append(append(append([]string{}, b.env...), p.env...), "MAILBOX_PROGRESS_FILE="+progress, "MAILBOX_ANSWERS_FILE="+answers)
	cmd.Stdin = strings.NewReader(prompt)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	var answering sync.WaitGroup
	answering.Go(func() { h.asked, h.called = b.answerCalls(progress, answers, decision, done) })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		h.out += line
		_ = json.Unmarshal([]byte(line), &h)
	}
	_ = cmd.Wait()
	close(done)
	answering.Wait()
	text := h.out + b.read("progress.jsonl") + errs.String()
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Log(text)
		}
	})
	return h
}

// answerCalls answers the questions in a progress file until done is closed, and returns them with
// the calls that were not asked about.
func (b *box) answerCalls(progress, answers, decision string, done <-chan struct{}) (asked, called []askedCall) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(progress)
	}
	f, wrong := os.OpenFile(answers, os.O_APPEND|os.O_WRONLY, 0)
	if err = errors.Join(err, wrong); err != nil {
		b.t.Error(err)
		return nil, nil
	}
	defer f.Close()
	for last := false; ; {
		text, _ := os.ReadFile(progress) // the next event shows it again
		asked, called = nil, nil
		for line := range bytes.Lines(text) {
			var l struct{ Ask, Called *askedCall }
			if json.Unmarshal(line, &l, json.MatchCaseInsensitiveNames(true)) != nil {
				continue
			}
			if l.Ask != nil {
				asked = append(asked, *l.Ask)
				fmt.Fprintf(f, "{\"id\":%q,\"decision\":%q}\n", l.Ask.ID, decision)
			} else if l.Called != nil {
				called = append(called, *l.Called)
			}
		}
		if last {
			return asked, called
		}
		select {
		case <-done:
			last = true
		case <-watcher.Events:
		}
	}
}
