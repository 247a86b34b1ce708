package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// continuing returns a task for the agent claude that continues the task t1.
func continuing(change func(*envelope.Task)) envelope.Task {
	t := envelope.Task{ID: "t2", Agent: "claude", Requester: "me", Metadata: map[string]jsontext.Value{envelope.ContinueKey: jsontext.Value(`"t1"`)}}
	if change != nil {
		change(&t)
	}
	return t
}

// withSession returns an agent, and the earlier task t1 with a session in its home directory.
func withSession(t *testing.T) (g *Agent, before *Earlier, file string) {
	home, run := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	file = filepath.Join(home, ".claude/projects/-x/s-1.jsonl")
	for path, text := range map[string]string{
		file:                            "{}\n",
		filepath.Join(run, "stdout"):    `{"type":"system","subtype":"init","session_id":"s-1"}` + "\n",
		filepath.Join(run, "meta"):      "{}",
		filepath.Join(run, sessionFile): `{"program":"claude","dir":"` + home + `/.claude/projects","cwd":"` + run + `"}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before = &Earlier{State: task.Done, Agent: "claude", Run: "r1", Dir: run, Request: envelope.Task{ID: "t1", Agent: "claude", Requester: "me"}}
	agents, err := New([]Binding{{ID: "claude", Profile: Claude}, {ID: "other", Profile: Claude}}, Options{
		Earlier: func(envelope.ID) (Earlier, error) { return *before, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	g, _ = agents.Lookup("claude")
	return g, before, file
}

func TestOnlyTheSessionOfAFittingTaskIsContinued(t *testing.T) {
	g, before, file := withSession(t)
	whole := *before
	for _, c := range []struct {
		want   string
		now    func(*envelope.Task)
		before func(*Earlier)
	}{
		{want: "", now: func(n *envelope.Task) { n.Requester = "somebody" }},
		{want: "there is no task t1", before: func(e *Earlier) { *e = Earlier{} }},
		{want: "task t1 is running", before: func(e *Earlier) { e.State = task.Running }},
		{want: "too old to be kept", before: func(e *Earlier) { e.Request = envelope.Task{} }},
		{want: `was for agent "other"`, before: func(e *Earlier) { e.Agent = "other" }},
		{want: "had no run", before: func(e *Earlier) { e.Dir = "" }},
		{want: "no session of task t1 is known", before: func(e *Earlier) { e.Dir = t.TempDir() }},
		{want: "the same directory", now: func(n *envelope.Task) { n.Metadata[envelope.BaseKey] = jsontext.Value(`"x"`) }},
		{want: "less protected", before: func(e *Earlier) { e.Request.Sensitivity = envelope.Confidential }},
		{want: `agent "other" did not request task t1`, now: func(n *envelope.Task) { n.Requester = "other" }},
		{want: "", now: func(n *envelope.Task) { n.Requester = "other" }, before: func(e *Earlier) { e.Request.Requester = "other" }},
	} {
		*before = whole
		if c.before != nil {
			c.before(before)
		}
		err := g.refuseContinue(continuing(c.now))
		if got := message(err); !strings.Contains(got, c.want) || c.want == "" && err != nil {
			t.Errorf("refused with %q; want %q", got, c.want)
		}
	}
	*before = whole
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := g.refuseContinue(continuing(nil)); !strings.Contains(message(err), "the session s-1 of task t1 is gone") {
		t.Errorf("without its file, the session is refused with %v; want that it is gone", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestASessionIsContinuedByOneRunAtATime(t *testing.T) {
	var s Sessions
	release, err := s.take(t.Context(), "s-1")
	if err != nil {
		t.Fatal(err)
	}
	if free, err := s.take(t.Context(), "s-2"); err != nil {
		t.Error(err)
	} else {
		free()
	}
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now(), errInUse)
	defer cancel()
	if _, err := s.take(ctx, "s-1"); !errors.Is(err, errInUse) {
		t.Errorf("the session was taken twice: %v", err)
	}
	release()
	if again, err := s.take(t.Context(), "s-1"); err != nil {
		t.Error(err)
	} else {
		again()
	}
}

func TestTheCommandOfEachProgramContinuesASession(t *testing.T) {
	for profile, want := range map[Profile]string{
		Claude: "p x --resume s", Codex: "p x resume s -", Gemini: "p x --resume s", OpenCode: "p x --session s", Cursor: "p x --resume s",
	} {
		argv := []string{"p", "x"}
		if profile == Codex {
			argv = append(argv, "-")
		}
		if got := strings.Join(sessionRecipes[profile].argv(argv, "s"), " "); got != want {
			t.Errorf("%s: %q; want %q", profile, got, want)
		}
	}
}

func TestAnIDOfASessionIsNoFlagAndNoPattern(t *testing.T) {
	for id, want := range map[string]bool{
		"01a21417-802c-7e03-87de-d60f57472eaa": true, "ses_debe8228affe": true,
		"": false, "-p": false, "../x": false, "*": false, "a b": false, strings.Repeat("a", 101): false,
	} {
		if isSessionID(id) != want {
			t.Errorf("isSessionID(%q) = %t; want %t", id, !want, want)
		}
	}
}

func TestTokensOfASessionAreCountedOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rollout.jsonl")
	const line = `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":240,"output_tokens":68,"total_tokens":308},"last_token_usage":{}}}}`
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (session{Program: Codex}).tokensIn(path); got != 308 {
		t.Errorf("tokens = %d; want 308", got)
	}
	tr := transcript{before: 308}
	if tr.spent(462); *tr.tokens != 154 {
		t.Errorf("a run of 462 tokens in all spent %d; want 154", *tr.tokens)
	}
}
