package agent_test

import (
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/task"
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
func TestARunThatSpentTooMuchIsNotMadeAgainForABusyProvider(t *testing.T) {
	three := int64(3)
	for tokens, again := range map[int]bool{3: true, 9: false} {
		b := playing(t, "hang")
		b.Output = agent.Claude
		j := jobFor(t, request(`, "budget_limit": {"tokens": 3}`))
		j.Meter = limited(j.Task.Budget, envelope.Budget{Tokens: &three})
		line := fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":"slow down","api_error_status":529,"usage":{"input_tokens":%d,"output_tokens":0}}`, tokens)
		ended(t, j, line, task.Exit{PID: 1 << 30, Code: 1})
		if o := bound(t, b).Recover(t.Context(), j); o.Retry != again {
			t.Errorf("after %d of 3 tokens: again %v (%+v); want %v", tokens, o.Retry, o.Result.Error, again)
		}
	}
}
