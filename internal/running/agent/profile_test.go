package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/testtools/slowtest"
)

// replaying returns the binding of an agent that prints a fixture, as the
// program of its profile would, and exits with a status, or stays at -1.
func replaying(t *testing.T, fixture string, status int) agent.Binding {
	t.Helper()
	at, err := filepath.Abs(filepath.Join("testdata", "profiles", fixture))
	if err != nil {
		t.Fatal(err)
	}
	b := playing(t, "replay", at, strconv.Itoa(status))
	b.Profile = agent.Profile(filepath.Dir(fixture))
	return b
}

// A printed thing is a fixture, and what is read from it.
type printed struct {
	fixture string
	status  int // of the exit
	want    envelope.Status
	kind    envelope.Kind
	words   string // in the summary of a success, in the message of a failure
	tokens  int64  // -1: unknown, as is cents
	cents   int64
	session bool
	hold    task.Reason
	retry   bool
}

const found = "Two SLAs are missed."

var fixtures = []printed{
	{"claude/success", 0, envelope.OK, "", found, 6187, 5, true, "", false},
	{"claude/success-json", 0, envelope.OK, "", found, 6187, 5, true, "", false},
	{"claude/error", 1, envelope.Failed, envelope.AgentError, "Tool execution was interrupted", 3052, 1, true, "", false},
	{"claude/budget", 1, envelope.Failed, envelope.AgentError, "Reached maximum budget", 3052, 13, true, "", false},
	{"claude/login", 1, envelope.Failed, envelope.AgentError, "not logged in", 0, 0, true, task.AuthRequired, false},
	{"claude/login-json", 1, envelope.Failed, envelope.AgentError, "Invalid API key", 0, 0, true, task.AuthRequired, false},
	{"claude/limit", 1, envelope.Failed, envelope.AgentError, "session limit", 0, 0, true, task.ProviderLimit, false},
	{"claude/overloaded", 1, envelope.Failed, envelope.AgentError, "overloaded", 0, 0, true, task.ProviderLimit, false},
	{"claude/overloaded-retried", 1, envelope.Failed, envelope.AgentError, "Repeated 529", 0, 0, true, task.ProviderLimit, false},
	{"claude/rate", 1, envelope.Failed, envelope.AgentError, "Request rejected (429)", 0, 0, true, task.ProviderLimit, false},
	{"claude/cut", 0, envelope.Failed, envelope.AgentError, "the answer of the provider was cut short", 121, 0, true, "", false},
	{"claude/whole-again", 0, envelope.OK, "", found, 154, 1, true, "", false},
	{"claude/truncated", 0, envelope.Failed, envelope.OutputInvalid, "before it says how it ended", 6187, -1, false, "", false},
	{"claude/truncated", 1, envelope.Failed, envelope.AgentCrashed, "exited with status 1", 6187, -1, false, "", false},

	{"codex/success", 0, envelope.OK, "", found, 24885, -1, true, "", false},
	{"codex/reconnected", 0, envelope.OK, "", found, 24885, -1, true, "", false},
	{"codex/error", 1, envelope.Failed, envelope.AgentError, "does not exist", -1, -1, true, "", false},
	{"codex/login", 1, envelope.Failed, envelope.AgentError, "401 Unauthorized", -1, -1, true, task.AuthRequired, false},
	{"codex/limit", 1, envelope.Failed, envelope.AgentError, "usage limit", -1, -1, true, task.ProviderLimit, false},
	{"codex/capacity", 1, envelope.Failed, envelope.AgentError, "at capacity", -1, -1, true, task.ProviderLimit, false},
	{"codex/rate", 1, envelope.Failed, envelope.AgentError, "last status: 429", -1, -1, true, task.ProviderLimit, false},
	{"codex/truncated", 0, envelope.Failed, envelope.OutputInvalid, "before it says how it ended", -1, -1, false, "", false},

	{"cursor/success", 0, envelope.OK, "", found, 19036, -1, true, "", false},
	{"cursor/success-old", 0, envelope.OK, "", found, -1, -1, true, "", false},
	{"cursor/success-stream", 0, envelope.OK, "", found, -1, -1, true, "", false},
	{"cursor/error", 1, envelope.Failed, envelope.AgentCrashed, "Connection failed", -1, -1, false, "", false},
	{"cursor/login", 1, envelope.Failed, envelope.AgentError, "Authentication required", -1, -1, false, task.AuthRequired, false},
	{"cursor/limit", 1, envelope.Failed, envelope.AgentError, "usage limit", -1, -1, false, task.ProviderLimit, false},
	{"cursor/limit-month", 1, envelope.Failed, envelope.AgentError, "monthly cycle", -1, -1, false, task.ProviderLimit, false},
	{"cursor/disk", 1, envelope.Failed, envelope.AgentError, "disk quota", -1, -1, false, "", true},
	{"cursor/truncated", 0, envelope.Failed, envelope.OutputInvalid, "before it says how it ended", -1, -1, false, "", false},

	{"gemini/success", 0, envelope.OK, "", found, 25113, -1, true, "", false},
	{"gemini/success-json", 0, envelope.OK, "", found, 34146, -1, true, "", false},
	{"gemini/error", 54, envelope.Failed, envelope.AgentError, "No space left", 0, -1, true, "", false},
	{"gemini/cut", 1, envelope.Failed, envelope.AgentError, "ended without a finish reason", 0, -1, true, "", false},
	{"gemini/login", 41, envelope.Failed, envelope.AgentError, "set an Auth method", -1, -1, false, task.AuthRequired, false},
	{"gemini/login-json", 41, envelope.Failed, envelope.AgentError, "set an Auth method", -1, -1, false, task.AuthRequired, false},
	{"gemini/limit", 1, envelope.Failed, envelope.AgentError, "quota", 0, -1, true, task.ProviderLimit, false},
	{"gemini/retry-info", 173, envelope.Failed, envelope.AgentError, "Suggested retry after 3600s", 0, -1, true, task.ProviderLimit, false},
	{"gemini/key", 144, envelope.Failed, envelope.AgentError, "API key not valid", 0, -1, true, task.AuthRequired, false},
	{"opencode/rate", 1, envelope.Failed, envelope.AgentError, "Rate limit reached", -1, -1, true, task.ProviderLimit, false},
	{"opencode/overloaded", 1, envelope.Failed, envelope.AgentError, "overloaded", -1, -1, true, task.ProviderLimit, false},
	{"opencode/success", 0, envelope.OK, "", found, 408, 2, true, "", false},
	{"opencode/login", 1, envelope.Failed, envelope.AgentError, "Incorrect API key", -1, -1, true, task.AuthRequired, false},
	{"opencode/limit", 1, envelope.Failed, envelope.AgentError, "usage limit", -1, -1, true, task.ProviderLimit, false},
	{"opencode/truncated", 0, envelope.Failed, envelope.OutputInvalid, "before it says how it ended", 154, 1, false, "", false},

	{"claude/denied", 0, envelope.OK, "", found, 308, 1, true, "", false},
	{"codex/denied", 0, envelope.OK, "", found, 308, -1, true, "", false},
	{"gemini/denied", 0, envelope.OK, "", found, 462, -1, true, "", false},
	{"opencode/denied", 0, envelope.OK, "", found, 154, 1, true, "", false},

	{"gemini/truncated", 0, envelope.Failed, envelope.OutputInvalid, "before it says how it ended", -1, -1, false, "", false},
}

func TestWhatTheProgramsOfProfilesPrintIsRead(t *testing.T) {
	for _, s := range fixtures {
		t.Run(s.fixture+" "+strconv.Itoa(s.status), func(t *testing.T) {
			t.Parallel()
			s.check(t, bound(t, replaying(t, s.fixture, s.status)).Run(t.Context(), jobFor(t, request("")), nil))
		})
	}
}

func (s printed) check(t *testing.T, got task.Outcome) {
	t.Helper()
	expect(t, s.fixture, got, s.want, s.kind)
	r := got.Result
	if words := r.Output.Summary + r.Error.Message; !strings.Contains(words, s.words) || s.want == envelope.OK && r.Output.Summary != s.words {
		t.Errorf("it says %q; want %q", words, s.words)
	}
	tokens, cents := int64(-1), int64(-1)
	if r.Cost != nil {
		tokens = r.Cost.Tokens
		if !r.Cost.Unpriced {
			cents = r.Cost.USDCents
		}
	}
	if tokens != s.tokens || cents != s.cents {
		t.Errorf("cost = %d tokens, %d cents; want %d, %d", tokens, cents, s.tokens, s.cents)
	}
	if has := strings.Contains(string(r.Output.Extra), `"session_id":"`); has != s.session {
		t.Errorf("output has %s; want a session_id: %v", r.Output.Extra, s.session)
	}
	if got.Hold != s.hold || got.Retry != s.retry {
		t.Errorf("hold %q, retry %v; want %q, %v", got.Hold, got.Retry, s.hold, s.retry)
	}
}

// Every fixture is read, and says where its format was looked up.
func TestEveryFixtureHasASourceAndATest(t *testing.T) {
	dirs, err := os.ReadDir("testdata/profiles")
	if err != nil || len(dirs) != 5 {
		t.Fatalf("fixtures of %d programs, %v; want 5", len(dirs), err)
	}
	for _, dir := range dirs {
		source, err := os.ReadFile(filepath.Join("testdata/profiles", dir.Name(), "SOURCE"))
		if err != nil || !strings.Contains(string(source), "Looked up 20") || !strings.Contains(string(source), "https://") {
			t.Errorf("%s: SOURCE is %q, %v; want pages and a date", dir.Name(), source, err)
		}
		files, _ := filepath.Glob(filepath.Join("testdata/profiles", dir.Name(), "*.*"))
		for _, file := range files {
			name := dir.Name() + "/" + strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			if !slices.ContainsFunc(fixtures, func(s printed) bool { return s.fixture == name }) {
				t.Errorf("%s is read by no test", file)
			}
		}
	}
}

func TestAProgramThatAnswersAndStaysIsEndedAndItsAnswerKept(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	for _, fixture := range []string{"claude/success", "codex/success", "cursor/success", "gemini/success", "opencode/success"} {
		b := replaying(t, fixture, -1)
		b.ExitTimeout = time.Millisecond
		got := outcome(t, b)
		expect(t, fixture, got, envelope.Failed, envelope.ExitTimeout)
		if r := got.Result; r.Output.Summary != found || !r.Review.Required || got.Exit.Cause != task.CauseExitTimeout || r.Cost == nil {
			t.Errorf("%s: result %+v, exit %+v; want the answer and its cost kept, for review", fixture, r, got.Exit)
		}
	}
}

func TestAProgramThatHangsInSilenceEndsAsConfigured(t *testing.T) {
	b := playing(t, "hang")
	b.Profile, b.IdleTimeout = agent.Claude, time.Millisecond
	expect(t, "idle", outcome(t, b), envelope.Failed, envelope.IdleTimeout)
	b.IdleTimeout, b.Timeout = 0, time.Millisecond
	expect(t, "at all", outcome(t, b), envelope.Failed, envelope.Timeout)
}

// A program that prints only that it tries its provider again makes no progress.
func TestAProgramWhoseModelMakesNoProgressEndsAtItsIdleTimeout(t *testing.T) {
	const begins, retries = `{"type":"system","subtype":"init","session_id":"s","tools":[]}`,
		`{"type":"system","subtype":"api_retry","attempt":4,"max_retries":10,"retry_delay_ms":11500,"error_status":529,"session_id":"s"}`
	b := playing(t, "again", begins, retries)
	b.Output, b.IdleTimeout = agent.Claude, 3*time.Second // a busy machine needs most of one for a start
	got := outcome(t, b)
	expect(t, "retries", got, envelope.Failed, envelope.IdleTimeout)
	const said = "the model made no progress for 3s and the run was ended; at the end, the provider is overloaded; attempt 4 of 10, next in 12 s"
	if got.Result.Error.Message != said || got.Exit.Cause != task.CauseIdleTimeout {
		t.Errorf("it ended as %q: %s\nwant %s", got.Exit.Cause, got.Result.Error.Message, said)
	}
	b.IdleTimeout, b.Timeout = 0, 3*time.Second
	if got = outcome(t, b); !strings.HasSuffix(got.Result.Error.Message, "; at the end, the provider is overloaded; attempt 4 of 10, next in 12 s") {
		t.Errorf("at its timeout: %s", got.Result.Error.Message)
	}
	b = playing(t, "again", begins, `{"type":"assistant","message":{"content":[]}}`)
	b.Output, b.IdleTimeout, b.Timeout = agent.Claude, 2*time.Second, 3*time.Second
	expect(t, "progress", outcome(t, b), envelope.Failed, envelope.Timeout)
}

// AINL-46: a budget stops a program that says what it spends as it goes on.
func TestAProgramThatSpendsTooMuchIsEndedOnTheWay(t *testing.T) {
	j := jobFor(t, request(`, "budget_limit": {"tokens": 5000}`))
	got := bound(t, replaying(t, "claude/truncated", -1)).Run(t.Context(), j, nil)
	expect(t, "Run", got, envelope.Failed, envelope.BudgetExceeded)
	if want := "the agent used 6187 tokens of 5000 and was ended"; got.Result.Error.Message != want {
		t.Errorf("message = %q; want %q", got.Result.Error.Message, want)
	}
}

func TestAnObjectIsTheOutputOfATaskThatAsksForFields(t *testing.T) {
	const line = `{"type":"result","subtype":"success","is_error":false,"result":"{\"summary\": \"s\", \"sla\": 99}","session_id":"x"}`
	b := claudePrinting(t, line)
	j := jobFor(t, request(`, "required_output_contract": {"must_include_fields": ["sla", "summary"]}`))
	got := bound(t, b).Run(t.Context(), j, nil).Result
	if got.Status != envelope.OK || got.Output.Summary != "s" || string(got.Output.Extra) != `{"session_id":"x","sla":99}` {
		t.Errorf("result = %+v; want the object as output", got)
	}
}

// claudePrinting returns the binding of a Claude Code that prints a line.
func claudePrinting(t *testing.T, line string) agent.Binding {
	t.Helper()
	b := printing(t, line, 0)
	b.Profile = agent.Claude
	return b
}

func TestPricesAreExactAndRoundedUp(t *testing.T) {
	for dollars, want := range map[string]int64{
		"0": 0, "0.01": 1, "0.29": 29, "0.290000000000000000001": 30, "1e-7": 1, "0.0999": 10, "12.34": 1234,
		"-1": -1, "null": -1, `"0.5"`: -1, "1e99": -1, "0.1e999999999": -1, "999999999999999999999": -1,
	} {
		line := `{"type":"result","subtype":"success","is_error":false,"result":"ok","total_cost_usd":` + dollars + `,"usage":{"input_tokens":1}}`
		got := outcome(t, claudePrinting(t, line)).Result.Cost
		cents := int64(-1)
		if got != nil && !got.Unpriced {
			cents = got.USDCents
		}
		if cents != want {
			t.Errorf("%s dollars are %d cents; want %d", dollars, cents, want)
		}
	}
}
