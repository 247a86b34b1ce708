package agent_test

import (
	"testing"

	"mailboxd/internal/running/agent"
)

func TestTextsOfSeveralTurnsHaveALineEachFromGemini(t *testing.T) {
	const lines = `{"type":"init","session_id":"s"}
{"type":"message","role":"assistant","content":"I lo","delta":true}
{"type":"message","role":"assistant","content":"ok.","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{}}
{"type":"tool_result","tool_id":"1","status":"success"}
{"type":"message","role":"assistant","content":"Done.","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":1}}
`
	b := printing(t, lines, 0)
	b.Profile = agent.Gemini
	if got := outcome(t, b).Result.Output.Summary; got != "I look.\nDone." {
		t.Errorf("summary = %q; want a line for each turn", got)
	}
}
