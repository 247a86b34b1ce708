package acp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/internal/running/acp"
)

// A trial is a run of a host with a stub as its agent.
type trial struct {
	t    *testing.T
	opts acp.Options
	out  bytes.Buffer
}

// newTrial makes a run in which the stub does the words.
func newTrial(t *testing.T, words string) *trial {
	t.Helper()
	t.Setenv(stubVariable, words)
	dir := t.TempDir()
	r := &trial{t: t}
	r.opts = acp.Options{
		Argv: []string{os.Args[0]}, Mode: "default", Prompt: "Hello", Cwd: dir, Stdout: &r.out, Grace: time.Minute,
		Progress: filepath.Join(dir, "progress.jsonl"), Answers: filepath.Join(dir, "answers.jsonl"),
	}
	return r
}

// A result is the last line of a host.
type result struct {
	Type, Status, Text string
	Session            string `json:"session_id"`
	Tokens             *int64
	Cost               struct {
		Amount   float64
		Currency string
	}
	Error struct{ Kind, Message string }
}

// run runs the host and returns its last line.
func (r *trial) run() (last result) {
	r.t.Helper()
	err := acp.Run(r.t.Context(), r.opts)
	lines := r.lines()
	if uerr := json.Unmarshal([]byte(lines[len(lines)-1]), &last); uerr != nil || last.Type != "result" {
		r.t.Fatalf("the last line is %q, %v; want a result", lines[len(lines)-1], uerr)
	}
	if f, ok := errors.AsType[*acp.Failure](err); (last.Status == "error") != (err != nil) || ok && f.Kind != last.Error.Kind {
		r.t.Errorf("Run returned %v with the result %+v; want the same failure", err, last)
	}
	return last
}

func (r *trial) lines() []string { return strings.Split(strings.TrimSpace(r.out.String()), "\n") }

// answer writes the answers file before the run.
func (r *trial) answer(lines ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.opts.Answers, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// A line of the progress file is about one call.
type line struct{ Ask, Called *acp.Call }

func (r *trial) progress() (all []line) {
	r.t.Helper()
	text, _ := os.ReadFile(r.opts.Progress) // there may be none
	for each := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(each, &l); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func TestTheAnswerHasTextSessionTokensAndCost(t *testing.T) {
	r := newTrial(t, "say cost odd fs")
	got := r.run()
	if got.Status != "ok" || got.Text != "You said: Hello" || got.Session != "s1" ||
		*got.Tokens != 42 || got.Cost.Amount != 0.25 || got.Cost.Currency != "USD" {
		t.Errorf("the result is %+v", got)
	}
	lines := r.lines()
	if len(lines) != 5 || !strings.Contains(lines[3], `"something_new"`) || !strings.Contains(lines[0], `"method":"session/update"`) {
		t.Errorf("standard output has the lines\n%s\nwant the four updates as they came, and the result", r.out.String())
	}
}

func TestADecisionChoosesTheOptionForOneCall(t *testing.T) {
	for decision, want := range map[string]string{"allow": "selected yes", "reject": "selected no", "cancel": "cancelled", "perhaps": "cancelled"} {
		r := newTrial(t, "ask")
		r.answer("no JSON", `{"id":"other","decision":"allow"}`, `{"id":"c1","decision":"`+decision+`"}`, `{"id":"c1","decision":"allow"}`, "")
		if got := r.run(); got.Text != want {
			t.Errorf("%s: the agent got %q; want %q", decision, got.Text, want)
		}
		asked := r.progress()
		if len(asked) != 1 || asked[0].Ask == nil {
			t.Fatalf("%s: the progress file has %+v; want one question", decision, asked)
		}
		got := *asked[0].Ask
		if got.ID != "c1" || got.Kind != "execute" || got.Title != "`ls`" || got.Command != "ls" ||
			string(got.Raw) != `{"command":"ls"}` ||
			!slices.Equal(got.Paths, []string{r.opts.Cwd + "/src"}) {
			t.Errorf("%s: the question is %+v", decision, got)
		}
	}
}

func TestADecisionThatComesLaterIsTaken(t *testing.T) {
	r := newTrial(t, "ask")
	var answering sync.WaitGroup
	answering.Go(func() {
		for len(r.progress()) == 0 {
			time.Sleep(time.Millisecond)
		}
		f, err := os.OpenFile(r.opts.Answers, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(`{"id":"c1","decision":"al`)
			_, err = f.WriteString("low\"}\n")
			_ = f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	if got := r.run(); got.Text != "selected yes" {
		t.Errorf("the agent got %q; want the decision", got.Text)
	}
	answering.Wait()
}

func TestTheSameQuestionGetsTheSameAnswerAndAnotherOneItsOwn(t *testing.T) {
	r := newTrial(t, "ask-again")
	r.answer(`{"id":"c1","decision":"allow"}`, `{"id":"c1#2","decision":"reject"}`, "")
	if got := r.run(); got.Text != "selected yes, selected yes, selected no" {
		t.Errorf("the agent got %q", got.Text)
	}
	if asked := r.progress(); len(asked) != 2 || asked[1].Ask.ID != "c1#2" || asked[1].Ask.Command != "rm -rf /" {
		t.Errorf("the questions are %+v; want one for each content", asked)
	}
}

func TestAQuestionAboutAnEditHasItsDiff(t *testing.T) {
	r := newTrial(t, "ask-edit")
	r.answer(`{"id":"e1","decision":"allow"}`, "")
	r.run()
	const want = "--- /w/a.txt\n+++ /w/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
	if got := r.progress()[0].Ask; got.Diff != want || !slices.Equal(got.Paths, []string{"/w/a.txt"}) || got.Command != "" {
		t.Errorf("the question is %+v; want the diff\n%s", got, want)
	}
}

func TestNoDecisionChoosesAnOptionForEver(t *testing.T) {
	r := newTrial(t, "ask-always")
	r.answer(`{"id":"c1","decision":"allow"}`, "")
	if got := r.run(); got.Text != "cancelled" {
		t.Errorf("the agent got %q; want cancelled", got.Text)
	}
}

func TestAQuestionOfAnotherSessionIsCancelled(t *testing.T) {
	r := newTrial(t, "ask-elsewhere")
	if got := r.run(); got.Text != "cancelled" || len(r.progress()) != 0 {
		t.Errorf("the agent got %q, and the questions are %+v", got.Text, r.progress())
	}
}

func TestWithoutAnAnswersFileCallsAreRejected(t *testing.T) {
	r := newTrial(t, "ask")
	r.opts.Answers = ""
	if got := r.run(); got.Text != "selected no" {
		t.Errorf("the agent got %q; want the rejection", got.Text)
	}
}

func TestACallThatWasNotAskedAboutIsReported(t *testing.T) {
	r := newTrial(t, "act ask")
	r.answer(`{"id":"c1","decision":"allow"}`, "")
	r.run()
	got := r.progress()
	if len(got) != 2 || got[0].Called == nil || got[0].Called.ID != "u1" || got[0].Called.Command != "touch x" || got[1].Ask == nil {
		t.Errorf("the progress file has %+v; want the call u1, and the question about c1 alone", got)
	}
}

func TestACallThatIsMadeInSpiteOfTheAnswerIsReported(t *testing.T) {
	r := newTrial(t, "disobey")
	r.answer(`{"id":"c1","decision":"reject"}`, "")
	r.run()
	if got := r.progress(); len(got) != 2 || got[1].Called == nil || got[1].Called.Command != "ls" {
		t.Errorf("the progress file has %+v; want the question and the call", got)
	}
}

func TestAQuestionIsCutToALineOrRejected(t *testing.T) {
	r := newTrial(t, "ask-much")
	r.answer(`{"id":"m1","decision":"allow"}`, "")
	if got := r.run(); got.Text != "selected yes, selected no" {
		t.Errorf("the agent got %q; want the decision, and a rejection of what is too long", got.Text)
	}
	if got := r.progress(); len(got) != 1 || got[0].Ask.Command != "ls" || string(got[0].Ask.Raw) != "null" {
		t.Errorf("the progress file has %d lines; want one without the input", len(got))
	}
}

func TestAnAgentThatGivesUpAfterARejectionFails(t *testing.T) {
	r := newTrial(t, "give-up")
	r.answer(`{"id":"c1","decision":"reject"}`, "")
	if got := r.run(); got.Error.Kind != "agent_error" || !strings.Contains(got.Error.Message, "after a call of a tool was rejected") {
		t.Errorf("the result is %+v", got)
	}
}

func TestAnAgentInAnotherModeGetsNoPrompt(t *testing.T) {
	for _, words := range []string{"stubborn act", "modeless act", "stray"} {
		r := newTrial(t, words)
		got := r.run()
		if got.Error.Kind != "agent_unsuitable" || len(r.progress()) > 0 {
			t.Errorf("%s: the result is %+v, and the calls %+v; want agent_unsuitable", words, got, r.progress())
		}
	}
}

func TestASessionIsResumedOrLoaded(t *testing.T) {
	for words, want := range map[string]string{
		"resumes say": "", "loads say": "", "resumes loads say": "", "say": "session_unavailable",
		"loads forgets say": "session_unavailable", "resumes forgets say": "session_unavailable", "resumes logged-out": "auth_required",
		"resumes stubborn act": "agent_unsuitable",
	} {
		r := newTrial(t, words)
		r.opts.Resume = "s1"
		got := r.run()
		if got.Error.Kind != want || want == "" && got.Text != "You said: Hello" || len(r.progress()) > 0 {
			t.Errorf("%s: the result is %+v; want %q, and nothing of the earlier run", words, got, want)
		}
		if strings.Contains(r.out.String(), "an old answer") {
			t.Errorf("%s: the output has the earlier run:\n%s", words, r.out.String())
		}
	}
}

func TestAnAgentThatBreaksTheProtocolFails(t *testing.T) {
	for words, want := range map[string]string{
		"exit":       "before it answered initialize (exit status 3); its standard error ends with: no settings",
		"noise":      `printed a line that is no message: "Welcome!"`,
		"large":      "a message of more than 16 MiB",
		"silent":     "did not answer initialize in 200ms",
		"break":      "printed a line that is no message",
		"say leave":  "ended before it answered session/prompt (exit status 0)",
		"refuse":     "refuses to go on",
		"logged-out": "Authentication required",
	} {
		r := newTrial(t, words)
		if words == "silent" {
			r.opts.Patience = 200 * time.Millisecond
		}
		kind := map[string]string{"refuse": "agent_error", "logged-out": "auth_required"}[words]
		if kind == "" {
			kind = "agent_protocol"
		}
		got := r.run()
		if got.Error.Kind != kind || !strings.Contains(got.Error.Message, want) ||
			strings.Count(r.out.String(), `"type":"result"`) != 1 {
			t.Errorf("%s: the result is %+v; want %s with %q, once", words, got, kind, want)
		}
	}
}

func TestArgumentsNameModeSessionAndCommand(t *testing.T) {
	got := acp.Arguments([]string{"agent", "--flag"}, "default", "s1")
	if want := "acp-host --mode default --resume s1 -- agent --flag"; strings.Join(got, " ") != want {
		t.Errorf("Arguments = %q; want %q", got, want)
	}
}
