package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
)

const (
	tokensLimit  = "Rate limit reached for the model on tokens per min (TPM)."
	monthlyLimit = "Monthly usage limit reached. Resets later."
)

// refused is a line of opencode's log: its provider refused a request some time ago.
func refused(ago time.Duration, session, words string) string {
	at := time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf("timestamp=%s level=ERROR run=e57c027c message=\"stream error\" providerID=fake modelID=fake-model session.id=%s "+
		"small=false agent=build mode=primary error.error=\"AI_APICallError: %s\"\n", at, session, words)
}

// printedAgo is an event of opencode of some time ago.
func printedAgo(ago time.Duration, kind, part string) string {
	return fmt.Sprintf(`{"type":%q,"timestamp":%d,"sessionID":"ses_1","part":%s}`+"\n", kind, time.Now().Add(-ago).UnixMilli(), part)
}

// sleeping returns the binding of an opencode that printed something, and sleeps.
func sleeping(t *testing.T, events, log string) agent.Binding {
	t.Helper()
	out := file(t, "printed.out", events)
	errs := file(t, "printed.err", log)
	b := playing(t, "print", out, errs)
	b.Profile = agent.OpenCode
	return b
}

// opencode has no event while it sleeps until its provider serves it again. Its log has the
// provider's words, and not always the time.
func TestARunOfOpenCodeThatWaitsForItsProviderIsEndedAndItsTaskIsHeld(t *testing.T) {
	step := printedAgo(8*time.Minute, "step_start", `{}`) + printedAgo(8*time.Minute, "step_finish", `{"tokens":{"input":5,"output":1}}`)
	for name, c := range map[string]struct {
		events, log string
		short       bool
		until       time.Duration // from now; 0: not named
	}{
		"for an hour, as the provider says":  {"", refused(0, "ses_1", tokensLimit+" Please try again in 3600s."), true, time.Hour},
		"between two steps":                  {step, refused(time.Minute, "ses_1", tokensLimit+" Please try again in 3600s."), true, 59 * time.Minute},
		"for longer than it can be at work":  {"", refused(7*time.Minute, "ses_1", monthlyLimit), false, 0},
		"for an unknown time, after a step":  {step, refused(7*time.Minute, "ses_1", "Too Many Requests"), true, 0},
		"for an hour, and it is overloaded":  {"", refused(0, "ses_1", "The engine is overloaded. Please try again in 1 hour."), true, time.Hour},
		"for a header, against a short time": {"", refused(7*time.Minute, "ses_1", tokensLimit+" Please try again in 20s."), true, -6*time.Minute - 40*time.Second},
	} {
		b := sleeping(t, c.events, c.log)
		b.ExitTimeout = time.Millisecond
		o := outcome(t, b)
		expect(t, name, o, envelope.Failed, envelope.AgentError)
		if o.Hold != task.ProviderLimit || o.HoldShort != c.short || o.Retry || o.Exit.Cause != "" {
			t.Errorf("%s: hold %q, short %v, retry %v, cause %q; want a limit, short %v", name, o.Hold, o.HoldShort, o.Retry, o.Exit.Cause, c.short)
		}
		if off := time.Until(o.HoldUntil) - c.until; c.until != 0 && (off < -time.Minute || off > time.Minute) || c.until == 0 && !o.HoldUntil.IsZero() {
			t.Errorf("%s: until %v; want %v from now", name, o.HoldUntil, c.until)
		}
		_, words, _ := strings.Cut(strings.TrimSuffix(c.log, "\"\n"), "AI_APICallError: ")
		if got := o.Result.Error.Message; !strings.HasSuffix(got, "provider: "+words) && !strings.HasSuffix(got, "overloaded: "+words) {
			t.Errorf("%s: %s; want the words of the provider", name, got)
		}
		if c.events != "" && (o.Result.Cost == nil || o.Result.Cost.Tokens != 6) {
			t.Errorf("%s: cost %+v; want that of the step", name, o.Result.Cost)
		}
	}
}

func TestARunOfOpenCodeThatGoesOnIsNotEnded(t *testing.T) {
	const hour = tokensLimit + " Please try again in 3600s."
	begun := printedAgo(9*time.Minute, "step_start", `{}`)
	for name, c := range map[string]struct{ events, log string }{
		"its model answers after that":        {printedAgo(7*time.Minute, "step_start", `{}`), refused(8*time.Minute, "ses_1", hour)},
		"its model answers at an unsaid time": {`{"type":"step_start","sessionID":"ses_1","part":{}}` + "\n", refused(8*time.Minute, "ses_1", hour)},
		"an agent that it started is refused": {begun, refused(8*time.Minute, "ses_2", hour)},
		"a title is refused":                  {begun, strings.Replace(refused(8*time.Minute, "ses_1", hour), "small=false", "small=true", 1)},
		"the pause is short":                  {begun, refused(0, "ses_1", tokensLimit+" Please try again in 20s.")},
		"it tries again on its own":           {begun, refused(2*time.Minute, "ses_1", monthlyLimit)},
		"it is something else":                {begun, refused(8*time.Minute, "ses_1", "Internal Server Error")},
		"it has used a tool, and the provider is overloaded": {
			printedAgo(9*time.Minute, "tool_use", `{"tool":"bash","state":{"status":"completed"}}`), refused(8*time.Minute, "ses_1", "The engine is overloaded"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sleeping(t, c.events, c.log)
			b.Timeout = 500 * time.Millisecond
			expect(t, name, outcome(t, b), envelope.Failed, envelope.Timeout)
		})
	}
}

// A daemon that was killed after it ended the run reads why in the records of the run.
func TestTheWaitOfARunIsReadAgainAfterARestart(t *testing.T) {
	b := playing(t, "hang")
	b.Profile = agent.OpenCode
	j := jobFor(t, request(""))
	ended(t, j, "", task.Exit{
		PID: 1 << 30, Code: -1, Signal: "SIGTERM (15)", Cause: task.CauseInterrupted, Reason: "its program waits for its provider", Finished: time.Now(),
	})
	log := refused(0, "ses_1", tokensLimit+" Please try again in 3600s.")
	if err := os.WriteFile(filepath.Join(j.Dir, runner.StderrFile), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := bound(t, b).Recover(t.Context(), j); o.Hold != task.ProviderLimit || time.Until(o.HoldUntil) < 58*time.Minute {
		t.Errorf("hold %q until %v (%+v); want an hour", o.Hold, o.HoldUntil, o.Result.Error)
	}
}
