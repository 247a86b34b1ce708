package agent_test

import (
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

func TestAResultOfClaudeWithoutAnyWordIsAFailure(t *testing.T) {
	for _, line := range []string{`{"type":"result"}`, `{"type":"result","is_error":true}`} {
		b := playing(t, "hang")
		b.Output = agent.Claude
		j := jobFor(t, request(""))
		ended(t, j, line, task.Exit{PID: 1 << 30, Code: 1})
		expect(t, line, bound(t, b).Recover(t.Context(), j), envelope.Failed, envelope.AgentError)
	}
}

// AINL-46: a busy provider is no reason to go on spending.
func TestARunThatSpentTooMuchDoesNotWaitForABusyProvider(t *testing.T) {
	three := int64(3)
	for tokens, want := range map[int]task.Reason{3: task.ProviderLimit, 9: ""} {
		b := playing(t, "hang")
		b.Output = agent.Claude
		j := jobFor(t, request(`, "budget_limit": {"tokens": 3}`))
		j.Meter = limited(j.Task.Budget, envelope.Budget{Tokens: &three})
		line := fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":"slow down","api_error_status":529,"usage":{"input_tokens":%d,"output_tokens":0}}`, tokens)
		ended(t, j, line, task.Exit{PID: 1 << 30, Code: 1})
		if o := bound(t, b).Recover(t.Context(), j); o.Hold != want || o.Retry {
			t.Errorf("after %d of 3 tokens: hold %q, retry %v (%+v); want %q", tokens, o.Hold, o.Retry, o.Result.Error, want)
		}
	}
}
