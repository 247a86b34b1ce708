package envelope_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

func TestTheResultOfTheContractIsWrittenAsItStands(t *testing.T) {
	want := fixture(t, "result-demo-openclaw-monitor-001.json")
	result, findings := envelope.DecodeResult(want)
	if len(findings) > 0 {
		t.Fatalf("findings = %v; want none", findings)
	}
	// The seed writes its lists in the same way, but for the empty one.
	if got := result.Encode(); !bytes.Equal(got, want) {
		t.Errorf("Encode:\n got %s\nwant %s", got, want)
	}
}

func TestEveryFieldIsAlwaysWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := `{"schema_version":"1.0","task_id":"t","agent_id":"","status":"","confidence":null,` +
			`"output":{"summary":"","actions":[]},"artifact_refs":[],"cost_used":{"tokens":0,"usd_cents":0},` +
			`"time_used":{"started_at":"2000-01-01T00:00:00Z","finished_at":"2000-01-01T00:00:00Z","wall_ms":0},` +
			`"needs_review":{"required":false,"reason":null},"error":{"kind":null,"message":null},` +
			`"provenance_ref":{"ainl_graph_checksum":"","ainl_program_id":"","runtime_version":"","recording_uri":""}}` + "\n"
		if got := string(envelope.Result{TaskID: "t"}.EncodeLine()); got != want {
			t.Errorf("EncodeLine:\n got %s\nwant %s", got, want)
		}
	})
}

func TestAResultHasOnlyTextThatItsReadersCanRead(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		about  string
		result envelope.Result
		want   string
	}{
		{"times are UTC to the millisecond", envelope.Result{Time: envelope.TimeUsed{
			Started: time.Date(2026, 3, 9, 21, 0, 0, 120_999_999, time.FixedZone("", 3600)), Wall: 1500 * time.Microsecond,
		}}, `"started_at":"2026-03-09T20:00:00.120Z"`},
		{"time runs forward", envelope.Result{Time: envelope.TimeUsed{Wall: -time.Second}}, `"wall_ms":0`},
		{"confidence", envelope.Result{Confidence: &half}, `"confidence":0.5`},
		{"confidence out of range", envelope.Result{Confidence: new(math.NaN())}, `"confidence":null`},
		{"ok has no error", envelope.Result{Status: envelope.OK, Error: envelope.Error{Kind: envelope.Timeout, Message: "x"}}, `"error":{"kind":null,"message":null}`},
		{"an error", envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: envelope.Timeout, Message: "x"}}, `"error":{"kind":"timeout","message":"x"}`},
		{"bad UTF-8", envelope.Result{Output: envelope.Output{Summary: "a\xffb"}}, "\"summary\":\"a\ufffdb\""},
		{"line ends stay inside the line", envelope.Result{Output: envelope.Output{Summary: "a\nb\u2028"}}, `"summary":"a\nb` + "\u2028" + `"`},
		{"row 6: half pairs are replaced", envelope.Result{Extra: jsontext.Value(`{"x":"\ud800"}`)}, "\"x\":\"\ufffd\"}"},
		{"extras are written back", envelope.Result{Extra: jsontext.Value(`{"x": [1.0, 1e999]}`)}, `,"x":[1.0,1e999]}`},
		{"extras of an output", envelope.Result{Output: envelope.Output{Extra: jsontext.Value(`{"x":1}`)}}, `"actions":[],"x":1}`},
		{"extras of an action", envelope.Result{Output: envelope.Output{Actions: []envelope.Action{{Extra: jsontext.Value(`{"x":1}`)}}}}, `"status":"","x":1}]`},
	} {
		line := c.result.EncodeLine()
		if !strings.Contains(string(line), c.want) {
			t.Errorf("%s: %s; want %s in it", c.about, line, c.want)
		}
		if bytes.Count(line, []byte("\n")) != 1 || !jsontext.Value(line).IsValid() {
			t.Errorf("%s: %s is not one line of JSON", c.about, line)
		}
	}
}

func TestAnExtraNeverReplacesAFieldOfTheResult(t *testing.T) {
	for _, extra := range []string{
		`{"status":"ok","task_id":"other"}`, `{"st\u0061tus":"ok"}`, `{"x":1,"x":2}`, `[]`, `{`, `{"x":NaN}`, "", "}",
	} {
		r := envelope.Result{TaskID: "t", AgentID: "a", Status: envelope.Failed, Extra: jsontext.Value(extra)}
		got, findings := envelope.DecodeResult(r.Encode())
		if len(findings) > 0 || got.Status != envelope.Failed || got.TaskID != "t" || got.Extra != nil {
			t.Errorf("extra %s: status %q, extra %s, %v; want the result as it was", extra, got.Status, got.Extra, findings)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	result, _ := envelope.DecodeResult(fixture(b, "result-task-2026-03-09-0001.json"))
	b.ReportAllocs()
	for b.Loop() {
		result.Encode()
	}
}

func BenchmarkDecodeAnswer(b *testing.B) {
	raw := fixture(b, "result-task-2026-03-09-0001.json")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		envelope.DecodeAnswer(raw)
	}
}
