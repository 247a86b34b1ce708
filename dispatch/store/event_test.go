package store

import (
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func TestTheFieldsOfAnEventAreWrittenAsJSONIs(t *testing.T) {
	data := map[string]any{
		"text": "a \"quoted\" <line>\n\u2028 of é", "empty": "", "status": envelope.OK, "kind": envelope.AgentCrashed,
		"attempt": 3, "took_ms": int64(-1 << 62), "late": true, "none": nil,
		"reasons": []task.Reason{task.Capacity, task.Paused}, "nested": map[string]any{"b": 1, "a": 2},
	}
	want, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	if got := fields(data); string(got) != string(want) {
		t.Errorf("fields = %s; want %s", got, want)
	}
	if got := fields(nil); string(got) != "{}" {
		t.Errorf("fields of nothing = %s; want {}", got)
	}
}

// BenchmarkEvent is an event, as each run has two.
func BenchmarkEvent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		fields(map[string]any{"attempt": 1, "run_id": "0b9c1c0e-8f0e-4b0e-9c56-6f3f6d1f2a11"})
	}
}
