package agent_test

import (
	"fmt"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

func TestALimitOfAProviderEndsWhenTheProgramSays(t *testing.T) {
	next := func(hour, minute int, location *time.Location) time.Time {
		now := time.Now().In(location)
		at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, location)
		if at.Before(now.Add(-15 * time.Minute)) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, hour, minute, 0, 0, location)
		}
		return at
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for fixture, want := range map[string]time.Time{
		"claude/limit": next(23, 0, berlin),
		"codex/limit":  next(12, 34, time.Local),
		"cursor/limit": {},
		"gemini/limit": time.Now().Add(3 * time.Hour),
	} {
		got := bound(t, replaying(t, fixture, 1)).Run(t.Context(), jobFor(t, request("")), nil).HoldUntil
		if d := got.Sub(want); d < -time.Minute || d > time.Minute {
			t.Errorf("%s: until %v; want %v", fixture, got, want)
		}
	}
}

// What the programs print when a provider names no time: an overload and a limit of a minute
// soon end, a used-up quota doesn't.
func TestTheKindOfALimitSaysHowLongItIsWaitedFor(t *testing.T) {
	for fixture, want := range map[string]struct {
		short bool
		after time.Duration // 0: unknown
	}{
		"claude/rate": {true, 0}, "claude/overloaded": {true, 0}, "claude/overloaded-retried": {true, 0},
		"codex/rate": {true, 0}, "codex/capacity": {true, 0},
		"gemini/retry-info": {true, time.Hour},
		"opencode/rate":     {true, time.Second}, "opencode/overloaded": {true, 0}, "opencode/limit": {false, 0},
	} {
		o := bound(t, replaying(t, fixture, 1)).Run(t.Context(), jobFor(t, request("")), nil)
		if o.Hold != task.ProviderLimit || o.HoldShort != want.short || o.Retry {
			t.Errorf("%s: hold %q, short %v, retry %v; want a limit, short %v", fixture, o.Hold, o.HoldShort, o.Retry, want.short)
		}
		after := o.HoldUntil.Sub(o.Exit.Finished)
		if want.after == 0 && !o.HoldUntil.IsZero() || want.after > 0 && after != want.after {
			t.Errorf("%s: until %v after the run; want %v", fixture, after, want.after)
		}
	}
}

// What a run did before is not done twice unless the operator allows retries.
func TestAnOverloadAfterACallOfAToolIsNoHold(t *testing.T) {
	for program, printed := range map[string]string{
		agent.Claude: `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make"}}]}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded."}`,
		agent.Codex: `{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"make","status":"in_progress"}}` + "\n" +
			`{"type":"turn.failed","error":{"message":"Selected model is at capacity. Please try a different model."}}`,
		agent.Gemini: `{"type":"tool_use","tool_id":"c1","tool_name":"run_shell_command","parameters":{}}` + "\n" +
			`{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: The model is overloaded. Please try again later.]"},"stats":{}}`,
		agent.OpenCode: `{"type":"tool_use","sessionID":"s","part":{"tool":"bash","state":{"status":"completed"}}}` + "\n" +
			`{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"overloaded","statusCode":503}}}`,
	} {
		b := printing(t, printed, 1)
		b.Profile = agent.Profile(program)
		if o := outcome(t, b); o.Hold != "" || !o.Retry || o.Result.Status != envelope.Failed {
			t.Errorf("%s: hold %q, retry %v, %+v; want a failure that may be retried", program, o.Hold, o.Retry, o.Result.Error)
		}
	}
}

// reachedLimit is what Claude Code prints at a limit, with the event that names its end.
func reachedLimit(status string, resets time.Time) string {
	return fmt.Sprintf(`{"type":"rate_limit_event","rate_limit_info":{"status":%q,"resetsAt":%d,"rateLimitType":"five_hour"}}`, status, resets.Unix()) + "\n" +
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 1am (UTC)"}`
}

func TestTheEventOfALimitNamesItsEndBeforeTheWords(t *testing.T) {
	at := time.Now().Add(5 * time.Hour).Truncate(time.Second)
	for status, exact := range map[string]bool{"rejected": true, "allowed_warning": false} {
		b := printing(t, reachedLimit(status, at), 1)
		b.Profile = agent.Claude
		got := outcome(t, b)
		if got.Hold != task.ProviderLimit || got.HoldUntil.Equal(at) != exact || got.HoldUntil.IsZero() {
			t.Errorf("%s: hold %q until %v; want provider_limit, until %v: %v", status, got.Hold, got.HoldUntil, at, exact)
		}
	}
}

// An answer about limits is an answer, also beside an exit status that says otherwise.
func TestAnAnswerAboutALimitIsNoLimit(t *testing.T) {
	const words = `You've hit your usage limit · resets 11pm`
	for format, printed := range map[string]string{
		agent.Claude: `{"type":"assistant","message":{"content":[{"type":"text","text":"` + words + `"}]}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":false,"result":"` + words + `"}`,
		agent.Codex:  `{"type":"item.completed","item":{"type":"agent_message","text":"` + words + `"}}` + "\n" + `{"type":"turn.completed"}`,
		agent.Cursor: `{"type":"result","is_error":false,"result":"` + words + `"}`,
		agent.Gemini: `{"type":"message","role":"assistant","content":"` + words + `"}` + "\n" + `{"type":"result","status":"success","stats":{}}`,
	} {
		for status, want := range map[int]envelope.Status{0: envelope.OK, 1: envelope.Failed} {
			b := printing(t, printed, status)
			b.Profile = agent.Profile(format)
			if got := outcome(t, b); got.Hold != "" || got.Retry || got.Result.Status != want {
				t.Errorf("%s, exit %d: %+v; want status %s and no hold", format, status, got, want)
			}
		}
	}
}

// AINL-46: waiting for a limit would only spend more.
func TestARunThatSpentTooMuchDoesNotWaitForALimit(t *testing.T) {
	three := int64(3)
	for tokens, want := range map[int]task.Reason{3: task.ProviderLimit, 9: ""} {
		b := playing(t, "hang")
		b.Output = agent.Claude
		j := jobFor(t, request(`, "budget_limit": {"tokens": 3}`))
		j.Meter = limited(j.Task.Budget, envelope.Budget{Tokens: &three})
		line := fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":"slow down","api_error_status":429,"usage":{"input_tokens":%d,"output_tokens":0}}`, tokens)
		ended(t, j, line, task.Exit{PID: 1 << 30, Code: 1, Finished: time.Now()})
		if o := bound(t, b).Recover(t.Context(), j); o.Hold != want || o.Retry {
			t.Errorf("after %d of 3 tokens: hold %q, retry %v (%+v); want %q", tokens, o.Hold, o.Retry, o.Result.Error, want)
		}
	}
}
