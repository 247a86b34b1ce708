package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
)

func TestAnAnswerBecomesACompleteResult(t *testing.T) {
	j := jobFor(t, request(`, "metadata": {"ainl.graph_checksum": "sha256:1", "ainl.program_id": "monitor.v1"}`))
	g := bound(t, printing(t, `{"status": "completed", "confidence": 0.5, "output": {"summary": "all is well", "actions": [], "sla": 99},
		"cost_used": {"tokens": 7, "usd_cents": 1}, "time_used": {"wall_ms": 123456789}}`, 0))
	got := g.Run(t.Context(), j, nil)
	expect(t, "Run", got, envelope.OK, "")
	r := got.Result
	if r.TaskID != "t1" || r.AgentID != "tester" || r.Output.Summary != "all is well" || string(r.Output.Extra) != `{"sla":99}` {
		t.Errorf("result = %+v; want what the agent said, under its id", r)
	}
	if r.Cost == nil || *r.Cost != (envelope.Cost{Tokens: 7, USDCents: 1}) {
		t.Errorf("cost = %v; want what the agent said", r.Cost)
	}
	if r.Time.Wall != got.Exit.Wall || r.Time.Started != got.Exit.Started || r.Time.Finished != got.Exit.Finished {
		t.Errorf("time = %+v; want what we measured, %+v", r.Time, got.Exit)
	}
	want := envelope.Provenance{
		GraphChecksum: "sha256:1", ProgramID: "monitor.v1",
		RuntimeVersion: "mailboxd/1.2.3", RecordingURI: "file://" + j.Dir,
	}
	if r.Provenance != want {
		t.Errorf("provenance = %+v; want %+v", r.Provenance, want)
	}
	refs := []envelope.Ref{
		{Kind: "run_trace", URI: "file://" + j.Dir},
		{Kind: "stdout", URI: "file://" + filepath.Join(j.Dir, "stdout")},
		{Kind: "stderr", URI: "file://" + filepath.Join(j.Dir, "stderr")},
	}
	if !slices.Equal(r.Artifacts, refs) {
		t.Errorf("artifacts = %v; want %v", r.Artifacts, refs)
	}
}

func tell(t *testing.T, o task.Outcome) given {
	t.Helper()
	var notified given
	text, err := os.ReadFile(strings.TrimPrefix(o.Result.Artifacts[1].URI, "file://"))
	if err == nil {
		err = json.Unmarshal(text, &notified)
	}
	if err != nil {
		t.Fatalf("the agent told nothing: %v (%+v)", err, o.Result.Error)
	}
	return notified
}

func TestTheRequestReachesTheAgentByteForByte(t *testing.T) {
	odd := request(`, "x_number": 1e999, "x_big": 9007199254740993,   "x_text": "\ud83d\ude00\u0000"`)
	j := jobFor(t, odd)
	b := playing(t, "tell")
	b.Output = agent.JSON
	notified := tell(t, bound(t, b).Run(t.Context(), j, nil))
	if notified.Stdin != odd {
		t.Errorf("standard input = %q; want %q", notified.Stdin, odd)
	}
}

// CLUTCH-64: the payload is data, between lines with a mark that its sender can't know.
func TestAPromptSaysWhatToDoAndKeepsTheRequestApart(t *testing.T) {
	b := playing(t, "tell")
	b.Output, b.Stdin = agent.JSON, agent.Prompt
	j := jobFor(t, request(""))
	notified := tell(t, bound(t, b).Run(t.Context(), j, nil))
	words, data, found := strings.Cut(notified.Stdin, "\n\nBEGIN TASK ")
	mark, data, _ := strings.Cut(data, "\n")
	if !found || data != request("")+"\nEND TASK "+mark+"\n" || len(mark) < 26 {
		t.Errorf("prompt = %q; want the request at its end, between two marks", notified.Stdin)
	}
	if !strings.Contains(words, "JSON object") || strings.Contains(words, "Look whether it runs.") {
		t.Errorf("prompt begins %q; want what an answer is, and no words of the requester", words)
	}
}

func TestNoneReadsNothing(t *testing.T) {
	b := playing(t, "tell")
	b.Output, b.Stdin = agent.JSON, agent.None
	if notified := tell(t, outcome(t, b)); notified.Stdin != "" {
		t.Errorf("standard input = %q; want nothing", notified.Stdin)
	}
}

// Row 42: agents get an allow-list of our environment, and their binding's own.
func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("DAEMON_SECRET", "s3cret")
	t.Setenv("API_KEY", "k3y")
	t.Setenv("LANG", "C.UTF-8")
	b := playing(t, "tell")
	b.Output, b.Env = agent.JSON, append(b.Env, "API_KEY", "MODE=a=b", "LANG=de_DE", "NOT_SET_ANYWHERE")
	j := jobFor(t, request(`, "budget_limit": {"tokens": 3000}, "allowed_tools": ["http", "queue"]`))
	j.Attempt, j.Deadline = 2, time.Date(9999, 1, 2, 3, 4, 5, 0, time.UTC)
	env := tell(t, bound(t, b).Run(t.Context(), j, nil)).Environ
	for _, want := range []string{
		"API_KEY=k3y", "MODE=a=b", "LANG=de_DE",
		"MAILBOX_TASK_ID=t1", "MAILBOX_RUN_ID=run-1", "MAILBOX_ATTEMPT=2", "MAILBOX_DEADLINE=9999-01-02T03:04:05Z",
		"MAILBOX_ALLOWED_TOOLS=http,queue", "MAILBOX_BUDGET_TOKENS=3000", "MAILBOX_RUN_DIR=" + j.Dir,
		"MAILBOX_TASK_FILE=" + filepath.Join(j.Dir, "request.json"),
		"MAILBOX_RESULT_FILE=" + filepath.Join(j.Dir, "result.json"),
		"MAILBOX_PROGRESS_FILE=" + filepath.Join(j.Dir, "progress.jsonl"),
	} {
		if !slices.Contains(env, want) {
			t.Errorf("environment lacks %s", want)
		}
	}
	for _, entry := range env {
		if strings.Contains(entry, "s3cret") || strings.HasPrefix(entry, "NOT_SET") || strings.HasPrefix(entry, "MAILBOX_BUDGET_USD_CENTS") {
			t.Errorf("environment has %s", entry)
		}
	}
}

// Row 41: no shell anywhere, and nothing of the envelope among the arguments.
func TestMetacharactersMeanNothing(t *testing.T) {
	evil := "; touch pwned; $(touch pwned) `touch pwned`"
	b := playing(t, "tell", evil, "{{.RunID}}", "budget={{.BudgetTokens}}", "{{.AllowedTools}}", "*", "")
	b.Output = agent.JSON
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	j := jobFor(t, strings.Replace(request(""), `"Look whether it runs."`, string(quoted), 1))
	j.Tools = []string{"--yolo", "a,b", "$(touch pwned)", "http"}
	notified := tell(t, bound(t, b).Run(t.Context(), j, nil))
	if want := []string{evil, "run-1", "budget=", "http", "*", ""}; !slices.Equal(notified.Argv, want) {
		t.Errorf("arguments = %q; want %q", notified.Argv, want)
	}
	if slices.ContainsFunc(notified.Environ, func(entry string) bool { return strings.Contains(entry, "pwned") }) {
		t.Errorf("environment = %q; want nothing of the request's text", notified.Environ)
	}
	if _, err := os.Stat(filepath.Join(j.Dir, "pwned")); err == nil {
		t.Error("a shell was there")
	}
}

// Row 41: a value that is too large for the kernel is cut to whole names.
func TestALongListOfToolsIsCutNotRefused(t *testing.T) {
	b := playing(t, "tell")
	b.Output = agent.JSON
	j := jobFor(t, request(""))
	j.Tools = slices.Repeat([]string{strings.Repeat("x", 1000)}, 500)
	env := tell(t, bound(t, b).Run(t.Context(), j, nil)).Environ
	i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "MAILBOX_ALLOWED_TOOLS=") })
	if i < 0 || len(env[i]) > 64<<10+100 || len(env[i]) < 60<<10 {
		t.Errorf("the tools take %d bytes; want close to 64 KiB", len(env[max(i, 0)]))
	}
}

// An ending is how a run should end.
type ending struct {
	name    string
	binding agent.Binding
	status  envelope.Status
	kind    envelope.Kind
	summary string // "" for any
	review  bool
}

func (e ending) check(t *testing.T) {
	t.Helper()
	got := outcome(t, e.binding)
	expect(t, e.name, got, e.status, e.kind)
	if got.Result.Review.Required != e.review {
		t.Errorf("%s: review = %+v; want %v", e.name, got.Result.Review, e.review)
	}
	if e.summary != "" && got.Result.Output.Summary != e.summary {
		t.Errorf("%s: summary = %q; want %q", e.name, got.Result.Output.Summary, e.summary)
	}
	if retry := strings.HasPrefix(e.name, "exit 75") || e.kind == envelope.SpawnFailed; got.Retry != retry {
		t.Errorf("%s: retry = %v; want %v", e.name, got.Retry, retry)
	}
}

// Row 37.
func TestExitStatusAndAnswerDecideTheResult(t *testing.T) {
	ok := `{"status": "ok", "output": {"summary": "fine"}}`
	said := func(status, more string) string {
		return `{"status": "` + status + `", "output": {"summary": "no"}` + more + `}`
	}
	for _, e := range []ending{
		{"exit 0 with an answer", printing(t, ok, 0), envelope.OK, "", "fine", false},
		{"exit 0 with nothing", printing(t, "", 0), envelope.Failed, envelope.OutputInvalid, "", false},
		{"exit 0 with junk", printing(t, "\x00\xff junk", 0), envelope.Failed, envelope.OutputInvalid, "", false},
		{"exit 0 with an array", printing(t, `[{"summary": "x"}]`, 0), envelope.Failed, envelope.OutputInvalid, "", false},
		{"exit 0 with an empty object", printing(t, `{}`, 0), envelope.Failed, envelope.OutputInvalid, "", false},
		{"exit 0 with a wrong type", printing(t, `{"summary": 5}`, 0), envelope.Failed, envelope.OutputInvalid, "", false},
		{"exit 3 with nothing", printing(t, "", 3), envelope.Failed, envelope.AgentCrashed, "", false},
		{"exit 3 with an ok answer", printing(t, ok, 3), envelope.Failed, envelope.AgentCrashed, "fine", true},
		{"exit 3 with its own error", printing(t, said("failed", `, "error": {"kind": "quota"}`), 3), envelope.Failed, "quota", "no", false},
		{"exit 3 with an unnamed error", printing(t, said("error", ""), 3), envelope.Failed, "agent_error", "no", false},
		{"exit 3 with a partial answer", printing(t, said("partial", ""), 3), envelope.Partial, "", "no", false},
		{"exit 75", printing(t, "", 75), envelope.Failed, envelope.AgentCrashed, "", false},
		{"exit 75 with an error", printing(t, said("error", ""), 75), envelope.Failed, "agent_error", "no", false},
		{"a word we do not know", printing(t, said("splendid", ""), 0), "splendid", "", "no", true},
		{"rejected by an agent that ran", printing(t, said("rejected", ""), 0), envelope.Failed, "agent_error", "no", true},
	} {
		e.check(t)
	}
}

// Rows 37, 39 and 41.
func TestAProcessThatIsEndedOrNeverBeginsHasAKindOfItsOwn(t *testing.T) {
	with := func(b agent.Binding, set func(*agent.Binding)) agent.Binding { set(&b); return b }
	hurry := func(b *agent.Binding) { b.Timeout, b.Grace = time.Millisecond, time.Millisecond }
	command := func(path string) agent.Binding { return agent.Binding{ID: "tester", Command: []string{path}} }
	for _, e := range []ending{
		{"a signal", playing(t, "suicide"), envelope.Failed, envelope.AgentCrashed, "", false},
		{"a timeout", with(playing(t, "hang"), hurry), envelope.Failed, envelope.Timeout, "", false},
		{"ignoring SIGTERM", with(playing(t, "stubborn"), hurry), envelope.Failed, envelope.Timeout, "", false},
		{"an idle timeout", with(playing(t, "hang"), func(b *agent.Binding) { b.IdleTimeout = time.Millisecond }), envelope.Failed, envelope.IdleTimeout, "", false},
		{"a child left behind", with(playing(t, "daemonise"), func(b *agent.Binding) { b.Grace = 10 * time.Millisecond }), envelope.OK, "", "done", true},
		{"missing", command("/nonexistent/agent"), envelope.Rejected, envelope.SpawnFailed, "", false},
		{"not executable", command(file(t, "agent", "#!/bin/sh\n")), envelope.Rejected, envelope.SpawnFailed, "", false},
		{"a relative path", command("./agent; true"), envelope.Rejected, envelope.SpawnFailed, "", false},
	} {
		e.check(t)
	}
}

func TestAnErrorSaysTheLastWordsEscaped(t *testing.T) {
	got := outcome(t, playing(t, "complain")).Result.Error.Message
	want := `the agent exited with status 3; its last words: "Traceback:\nKeyError: 'x'\a"`
	if got != want {
		t.Errorf("message = %s; want %s", got, want)
	}
	got = outcome(t, playing(t, "suicide")).Result.Error.Message
	if want := "the agent was ended by SIGKILL (9)"; got != want {
		t.Errorf("message = %s; want %s", got, want)
	}
}

// Row 36: the daemon's memory stays flat, whatever an agent prints.
func TestAFloodCostsNoMemory(t *testing.T) {
	b := playing(t, "flood")
	b.MaxOutput = 8 << 20
	g, j := bound(t, b), jobFor(t, request(""))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := g.Run(t.Context(), j, nil)
	runtime.ReadMemStats(&after)
	expect(t, "flood", got, envelope.Failed, envelope.OutputTooLarge)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("the run allocated %d bytes; want little beside a tail of its output", used)
	}
}

// Row 40: an agent that never reads a request of a megabyte.
func TestALargeRequestBlocksNobody(t *testing.T) {
	g := bound(t, printing(t, `{"summary": "not read"}`, 0))
	j := jobFor(t, request(`, "x_large": "`+strings.Repeat("x", 1<<20)+`"`))
	expect(t, "Run", g.Run(t.Context(), j, nil), envelope.OK, "")
}

func TestAStoppingDaemonLosesTheRun(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	b := playing(t, "hang")
	got := bound(t, b).Run(ctx, jobFor(t, request("")), func(runner.Process) { stop(errors.New("the daemon is shutting down")) })
	expect(t, "Run", got, envelope.Failed, envelope.RunLost)
	if !strings.Contains(got.Result.Error.Message, "the daemon is shutting down") {
		t.Errorf("message = %q; want it to say why", got.Result.Error.Message)
	}
	got = bound(t, b).Run(ctx, jobFor(t, request("")), nil)
	expect(t, "Run with an ended context", got, envelope.Rejected, envelope.RunLost)
}

func TestNothingIsStartedAfterTheDeadline(t *testing.T) {
	j := jobFor(t, request(""))
	j.Deadline = time.Unix(0, 0)
	got := bound(t, playing(t, "hang")).Run(t.Context(), j, nil)
	expect(t, "Run", got, envelope.Rejected, envelope.DeadlineExceeded)
	if got.Exit.Code != -1 || len(got.Result.Artifacts) != 1 {
		t.Errorf("exit %+v, artifacts %v; want no process and no output", got.Exit, got.Result.Artifacts)
	}
}
