package envelope_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

func TestTheResultsOfTheContractAreReadInFull(t *testing.T) {
	raw := fixture(t, "result-task-2026-03-09-0001.json")
	confidence := 0.9
	want := envelope.Result{
		TaskID: "task-2026-03-09-0001", AgentID: "openclaw.monitor", Status: envelope.OK, Confidence: &confidence,
		Output: envelope.Output{
			Summary: "TikTok SLA is within bounds: all KPIs within 24h window are green.",
			Actions: []envelope.Action{{Kind: "notification", Description: "No remediation required; log daily SLA summary.", Status: "executed"}},
		},
		Artifacts: []envelope.Ref{
			{Kind: "run_summary", URI: "file://runs/tiktok_sla_monitor/2026-03-09/summary.json"},
			{Kind: "run_trace", URI: "file://runs/tiktok_sla_monitor/2026-03-09/trace.json"},
		},
		Cost: &envelope.Cost{},
		Time: envelope.TimeUsed{
			Started:  time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC),
			Finished: time.Date(2026, 3, 9, 20, 0, 5, 0, time.UTC),
			Wall:     5 * time.Second,
		},
		Provenance: envelope.Provenance{
			GraphChecksum: "sha256:...", ProgramID: "tiktok_sla_monitor.v1", RuntimeVersion: "ainl-runtime-1.0.0",
			RecordingURI: "file://runs/tiktok_sla_monitor/2026-03-09/calls.json",
		},
	}
	for name, decode := range map[string]func([]byte) (envelope.Result, envelope.Findings){
		"DecodeResult": envelope.DecodeResult, "DecodeAnswer": envelope.DecodeAnswer,
	} {
		got, findings := decode(raw)
		if len(findings) > 0 {
			t.Errorf("%s: findings = %v; want none", name, findings)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: result differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestAForeignResultMustBeComplete(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`: "schema_version: required; task_id: required; agent_id: required; status: required; output: required",
		`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":{}}`:                                                                            "output.summary: required; output.actions: required",
		`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":[]}`:                                                                            "output: must be an object",
		`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":{"summary":1,"actions":{}}}`:                                                    "output.summary: must be a string; output.actions: must be a list",
		`{"schema_version":1.0,"task_id":7,"agent_id":8,"status":true,"output":{"summary":"","actions":[]}}`:                                                         "schema_version: must be a string; task_id: must be a string; agent_id: must be a string; status: must be a string",
		`{"schema_version":"2.0","task_id":"t","agent_id":"a","status":"ok","output":{"summary":"","actions":[]}}`:                                                   `unsupported_version schema_version: is "2.0", only 1.x is supported`,
		`{"schema_version":"1.0","task_id":"../t","agent_id":"a","status":"ok","output":{"summary":"","actions":[]}}`:                                                `task_id: must not contain "/"`,
		`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":{"summary":"","actions":[{"kind":"a","description":1,"status":"executed"},7]}}`: "output.actions[0].description: must be a string; output.actions[1]: must be an object",
		`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":{"summary":"","actions":[]}}`:                                                   "",
		`[]`: "must be a JSON object",
		``:   "invalid_json ends where a value should be (byte 0)",
	} {
		if _, findings := envelope.DecodeResult([]byte(raw)); short(findings) != want {
			t.Errorf("%s:\n got %s\nwant %s", raw, short(findings), want)
		}
	}
}

func TestAnAnswerMayLeaveOutAnything(t *testing.T) {
	for raw, want := range map[string]envelope.Result{
		`{}`:                         {},
		`{"summary":"done"}`:         {Output: envelope.Output{Summary: "done"}},
		`{"output":{"summary":"x"}}`: {Output: envelope.Output{Summary: "x"}},
		`{"task_id":20260309,"agent_id":"a","summary":"flat"}`: {TaskID: "20260309", AgentID: "a", Output: envelope.Output{Summary: "flat"}},
		`{"summary":"x","status":"done","actions":[],"kpi":{"a":1}}`: {
			Status: envelope.OK,
			Output: envelope.Output{Summary: "x", Extra: jsontext.Value(`{"status":"done","kpi":{"a":1}}`)},
		},
		`{"schema_version":"0.1","status":"success","needs_review":true,"provenance_ref":"file://x","output":{"summary":"x"}}`: {
			Status: envelope.OK, Review: envelope.Review{Required: true}, Provenance: envelope.Provenance{RecordingURI: "file://x"},
			Output: envelope.Output{Summary: "x"},
		},
		`{"status":"failed","cost_used":{"tokens":5,"usd_cents":1},"error":"no network","output":{"summary":"x"},"more":[1.0]}`: {
			Status: envelope.Failed, Cost: &envelope.Cost{Tokens: 5, USDCents: 1}, Error: envelope.Error{Message: "no network"},
			Output: envelope.Output{Summary: "x"}, Extra: jsontext.Value(`{"more":[1.0]}`),
		},
		`{"output":{"actions":[{"kind":"k","description":"d","status":"skipped","tool":"http"}]}}`: {
			Output: envelope.Output{Actions: []envelope.Action{{Kind: "k", Description: "d", Status: "skipped", Extra: jsontext.Value(`{"tool":"http"}`)}}},
		},
	} {
		got, findings := envelope.DecodeAnswer([]byte(raw))
		if findings.Refused() {
			t.Errorf("%s: %v; want it taken", raw, findings)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: answer differs (-want +got):\n%s", raw, diff)
		}
	}
}

func TestAValueThatMakesNoSenseInAnAnswerAsksForAPerson(t *testing.T) {
	for _, c := range []struct{ rule, field, value, reason string }{
		{"AINL-63", "status", `"splendid"`, `status: is "splendid", which is no status we know`},
		{"AINL-64", "confidence", `-0.1`, "confidence: must be a number from 0 to 1: left out"},
		{"AINL-64", "confidence", `1.5`, "confidence: must be a number from 0 to 1: left out"},
		{"AINL-64", "confidence", `"high"`, "confidence: must be a number from 0 to 1: left out"},
		{"AINL-64", "confidence", `1e999`, "confidence: must be a number from 0 to 1: left out"},
		{"AINL-66", "output", `{"actions":[{"kind":"k","description":"d","status":"maybe"}]}`, `output.actions[0].status: is "maybe", not "pending", "executed" or "skipped"`},
		{"AINL-66", "output", `{"actions":[{"kind":"k","description":"d"}]}`, `output.actions[0]: does not say whether it was executed`},
		{"AINL-67", "artifact_refs", `[{"kind":"a","uri":"b"},{"kind":"a"}]`, "artifact_refs[1]: must have a kind and a uri: left out"},
		{"AINL-67", "artifact_refs", `"a"`, "artifact_refs: must be a list: left out"},
		{"AINL-68", "cost_used", `{"tokens":-1,"usd_cents":0}`, "cost_used: must have whole numbers for tokens and usd_cents: the cost is unknown"},
		{"AINL-68", "cost_used", `{"tokens":5}`, "cost_used: must have whole numbers for tokens and usd_cents: the cost is unknown"},
		{"AINL-68", "cost_used", `7`, "cost_used: must have whole numbers for tokens and usd_cents: the cost is unknown"},
		{"AINL-70", "needs_review", `"yes"`, "needs_review: must say whether review is required"},
		{"AINL-70", "needs_review", `{"reason":"odd"}`, "odd; needs_review: must say whether review is required"},
		{"AINL-71", "error", `7`, "error: must have a kind and a message"},
	} {
		raw := fmt.Sprintf(`{"agent_id":"a",%q:%s}`, c.field, c.value)
		got, findings := envelope.DecodeAnswer([]byte(raw))
		want := envelope.Review{Required: true, Reason: c.reason}
		if findings.Refused() || got.Review != want || len(findings) == 0 {
			t.Errorf("%s: %s: review %+v, findings %v; want %+v and a warning", c.rule, raw, got.Review, findings, want)
		}
		if got.Cost != nil || got.Confidence != nil {
			t.Errorf("%s: %s: cost %v, confidence %v; want both unknown", c.rule, raw, got.Cost, got.Confidence)
		}
	}
	got, _ := envelope.DecodeAnswer([]byte(`{"agent_id":"a","status":"splendid"}`))
	if got.Status != "splendid" {
		t.Errorf("AINL-63: status = %q; want it kept", got.Status)
	}
	got, _ = envelope.DecodeAnswer([]byte(`{"agent_id":"a","status":"ok","error":{"kind":"x","message":null}}`))
	if !got.Review.Required {
		t.Error("AINL-71: ok with an error asks for no review; want review")
	}
	got, _ = envelope.DecodeAnswer([]byte(`{"needs_review":{"required":true,"reason":"mine"},"confidence":2}`))
	if want := "mine; confidence: must be a number from 0 to 1: left out"; got.Review.Reason != want {
		t.Errorf("AINL-70: reason = %q; want %q", got.Review.Reason, want)
	}
}

func TestAnAnswerThatCannotBePublishedIsRefused(t *testing.T) {
	for about, raw := range map[string]string{
		"row 4: NaN":                      `{"summary":NaN}`,
		"row 1: bad UTF-8":                "{\"summary\":\"\xff\"}",
		"row 2: duplicate names":          `{"summary":"a","x":{"b":1,"b":2}}`,
		"row 5: an integer for no reader": `{"summary":"a","x":` + strings.Repeat("9", 4301) + `}`,
		"row 6: half a pair in a name":    `{"summary":"a","\ud800":1}`,
		"row 11: depth":                   `{"summary":"a","x":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
		"a list":                          `[]`,
		"more than one object":            `{"summary":"a"}{"summary":"b"}`,
		"a summary that is none":          `{"summary":7}`,
		"a status that is none":           `{"output":{"summary":"x"},"status":7}`,
		"an unsafe id":                    `{"output":{"summary":"x"},"task_id":"../x"}`,
		"another version":                 `{"output":{"summary":"x"},"schema_version":"2.0"}`,
	} {
		if _, findings := envelope.DecodeAnswer([]byte(raw)); findings.Kind() != envelope.OutputInvalid {
			t.Errorf("%s: %v; want %s", about, findings, envelope.OutputInvalid)
		}
	}
}

func TestAnOutputIsTakenAsItIs(t *testing.T) {
	got, findings := envelope.DecodeOutput([]byte(`{"task_id":"t","summary":"x","output":{"a":1}}`))
	want := envelope.Output{Summary: "x", Extra: jsontext.Value(`{"task_id":"t","output":{"a":1}}`)}
	if diff := cmp.Diff(want, got); diff != "" || len(findings) > 0 {
		t.Errorf("findings %v; output differs (-want +got):\n%s", findings, diff)
	}
	if _, findings := envelope.DecodeOutput([]byte("[]")); findings.Kind() != envelope.OutputInvalid {
		t.Errorf("DecodeOutput([]) = %v; want %s", findings, envelope.OutputInvalid)
	}
}

func TestOddAccountsOfTimeAndOriginAreLeftOut(t *testing.T) {
	for raw, want := range map[string]string{
		`{"time_used":{"started_at":"soon","finished_at":7,"wall_ms":-1}}`: "warning time_used.started_at: must be a time with a zone: left out; " +
			"warning time_used.finished_at: must be a time with a zone: left out; warning time_used.wall_ms: must be a whole number: left out",
		`{"time_used":{"wall_ms":9223372036854775807}}`: "warning time_used.wall_ms: must be a whole number: left out",
		`{"agent_id":"a","time_used":7}`:                "",
		`{"provenance_ref":[]}`:                         "warning provenance_ref: should be an object: left out",
		`{"provenance_ref":{"runtime_version":7}}`:      "",
	} {
		got, findings := envelope.DecodeAnswer([]byte(raw))
		if short(findings) != want || got.Time != (envelope.TimeUsed{}) || got.Provenance != (envelope.Provenance{}) {
			t.Errorf("%s: %+v, %+v, %s; want nothing and %s", raw, got.Time, got.Provenance, short(findings), want)
		}
	}
}
