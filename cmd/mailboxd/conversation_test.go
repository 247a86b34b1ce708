package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"mailboxd/internal/testtools/slowtest"
	"mailboxd/watcher"
)

// TestAConversationSurvivesAKillAfterEachMessage holds one conversation without
// a disturbance, then once for each of its messages with a SIGKILL of the daemon
// right after somebody sent it to a task file or saw it in an inbox. All inboxes
// have to be the same in the end, but for a line that was repeated.
func TestAConversationSurvivesAKillAfterEachMessage(t *testing.T) {
	slowtest.SkipShort(t, "it starts two daemons for each message")
	history, err := txtar.ParseFile("testdata/conversation.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want := hold(t, history, -1)
	for _, name := range []string{"ann", "desk", "user", "orchestrator", "pm-1", "analyst-1"} {
		if len(want[name]) == 0 {
			t.Errorf("the inbox of %s has no lines", name)
		}
	}
	for n, step := range stepsOf(history) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, hold(t, history, n)); diff != "" {
				t.Errorf("killed after %s\ninboxes without a kill (-) and with it (+):\n%s", step, diff)
			}
		})
	}
}

// stepsOf are the lines that say what happens in a conversation.
func stepsOf(history *txtar.Archive) (steps []string) {
	for _, f := range history.Files {
		if f.Name == "steps" {
			steps = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return steps
}

// hold has a conversation and returns the lines of each inbox. It kills the
// daemon after the step with the given number, and starts it again.
func hold(t *testing.T, history *txtar.Archive, killAfter int) map[string][]string {
	t.Helper()
	m := newManager(t)
	m.env = append(m.env, "PARTS="+filepath.Join(m.dir, "parts"))
	for _, f := range history.Files {
		path := filepath.Join(m.dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := m.start()
	for n, step := range stepsOf(history) {
		kind, text, _ := strings.Cut(step, " ")
		switch kind {
		case ">":
			if err := appendFile(filepath.Join(m.dir, "box/tasks/talk.jsonl"), text+"\n"); err != nil {
				t.Fatal(err)
			}
		case "<":
			inbox, want, _ := strings.Cut(text, " ")
			m.awaitInbox(inbox, want)
		default:
			t.Fatalf("step %q begins with neither > nor <", step)
		}
		if n == killAfter {
			serve = m.restart(serve)
		}
	}
	m.stop(serve)
	m.run("serve", "--once", "--config", filepath.Join(m.dir, "config.yaml")) // whatever is left to say
	return m.inboxes()
}

// restart kills the daemon and starts another one.
func (m *manager) restart(serve *exec.Cmd) *exec.Cmd {
	m.t.Helper()
	if err := serve.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = serve.Wait() // it was killed
	return m.start()
}

// awaitInbox waits until an inbox has a text.
func (m *manager) awaitInbox(name, want string) {
	m.t.Helper()
	ctx, found := context.WithTimeout(m.t.Context(), time.Minute)
	defer found()
	path, text := filepath.Join(m.dir, "box/agents", name, "inbox.jsonl"), ""
	err := watcher.Watch(ctx, []string{filepath.Join(m.dir, "box")}, 50*time.Millisecond, func() {
		content, err := os.ReadFile(path)
		if text = string(content); err == nil && strings.Contains(text, want) {
			found()
		}
	})
	if err != nil || !strings.Contains(text, want) {
		m.t.Fatalf("the inbox of %s has no %s (%v):\n%s", name, want, err, text)
	}
}

// varying is what differs from one conversation to the next: ids that were made
// up, times, and the names of directories.
var varying = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}` +
	`|"ts":[0-9]+|"(timestamp|since)":"[^"]*"|"(wall_ms|started_at|finished_at)":("[^"]*"|[0-9]+)|file://[^"]*`)

// inboxes are the lines of each inbox without what varies, and without lines
// that were repeated.
func (m *manager) inboxes() map[string][]string {
	m.t.Helper()
	paths, err := filepath.Glob(filepath.Join(m.dir, "box/agents/*/inbox.jsonl"))
	if err != nil {
		m.t.Fatal(err)
	}
	inboxes := map[string][]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			m.t.Fatal(err)
		}
		name, seen := filepath.Base(filepath.Dir(path)), map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if seen[line] { // lines are appended together, so more than one may come again
				continue
			}
			seen[line] = true
			inboxes[name] = append(inboxes[name], varying.ReplaceAllString(line, "..."))
		}
	}
	return inboxes
}
