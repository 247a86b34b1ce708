package view_test

import (
	"strings"
	"testing"

	"mailboxd/internal/cli/view"
)

func TestAnAnswerIsPrintedAsPlainText(t *testing.T) {
	const frame = `{"schema_version":"1.0","task_id":"t1","agent_id":"a","status":"STATUS","confidence":null,"output":OUTPUT,"artifact_refs":[],
		"cost_used":{"tokens":1234,"usd_cents":5},"time_used":{"started_at":"2026-03-09T20:00:00Z","finished_at":"2026-03-09T20:00:02Z","wall_ms":2000},
		"needs_review":{"required":false,"reason":null},"error":ERROR,
		"provenance_ref":{"ainl_graph_checksum":"","ainl_program_id":"","runtime_version":"","recording_uri":""}}`
	none := `{"kind":null,"message":null}`
	for _, c := range []struct{ status, output, failure, answer, end string }{
		{"ok", `{"summary":"one\ntwo\u001b[2J","actions":[{"kind":"edit","description":"a.go","status":"executed"}]}`, none,
			"one\ntwo\\u001b[2J\n- edit: a.go (executed)\n", "t1  ok  1234 tokens, $0.05  2s\n"},
		{"ok", `{"summary":"","actions":[],"files":3}`, none, "{\n  \"files\": 3\n}\n", "t1  ok  1234 tokens, $0.05  2s\n"},
		{"error", `{"summary":"it broke","actions":[]}`, `{"kind":"timeout","message":"ran longer than 1m"}`,
			"it broke\n", "timeout: ran longer than 1m\nt1  error  1234 tokens, $0.05  2s\n"},
		{"rejected", `{"summary":"no such agent","actions":[]}`, `{"kind":"unknown_agent","message":"no such agent"}`,
			"", "unknown_agent: no such agent\nt1  rejected  1234 tokens, $0.05  2s\n"},
	} {
		raw := []byte(strings.NewReplacer("STATUS", c.status, "OUTPUT", c.output, "ERROR", c.failure).Replace(frame))
		var answer, end strings.Builder
		if err := view.PrintAnswer(&answer, raw); err != nil {
			t.Fatal(err)
		}
		if err := view.PrintEnd(&end, "t1", raw); err != nil {
			t.Fatal(err)
		}
		if answer.String() != c.answer || end.String() != c.end {
			t.Errorf("%s: answer %q, end %q; want %q, %q", c.output, answer.String(), end.String(), c.answer, c.end)
		}
	}
}
