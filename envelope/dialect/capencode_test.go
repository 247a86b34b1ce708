package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// same compares two messages without their bytes.
func same(t *testing.T, line []byte, before, after envelope.Message) {
	t.Helper()
	if bytes.ContainsAny(line, "\r\n") {
		t.Errorf("%s is more than a line", line)
	}
	for _, m := range []*envelope.Message{&before, &after} {
		m.Raw, m.Hash, m.Request.Raw, m.Request.Hash = nil, "", nil, ""
	}
	if before.Time.IsZero() {
		after.Time = before.Time // it is always said (CAP-11)
	}
	if before.Attachments == nil && len(after.Attachments) == 0 && before.Request.Payload.String() == "{}" {
		after.Request.Payload, after.Request.Input = before.Request.Payload, before.Request.Input // none is said as []
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("%s\nsays %+v\nwant %+v", line, after, before)
	}
}

func TestEncodingADecodedCAPMessageLosesNothing(t *testing.T) {
	lines := walkThrough(t)
	dice := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		lines = append(lines, randomCAP(dice))
	}
	for _, line := range lines {
		m := decodeCAP(t, string(line))
		again := m
		again.Raw = nil
		said, lost := capCodec(t).Encode(again)
		if len(lost) > 0 {
			t.Errorf("%s loses %q", said, lost)
		}
		same(t, said, m, decodeCAP(t, string(said)))
	}
}

// randomCAP is any message of CAP's.
func randomCAP(dice *rand.Rand) []byte {
	pick := func(words ...any) any { return words[dice.IntN(len(words))] }
	text := func() any {
		return pick("", "hello", "two\nlines", `quo"te\`, "ünïcode ☃", "[timeout] x", "[nothing] x", strings.Repeat("a", 3000))
	}
	things := func() []any {
		list := []any{}
		for range dice.IntN(4) {
			list = append(list, pick(
				map[string]any{"type": "file", "path": pick("/tmp/a b.csv", "out/ü.md", "x")},
				map[string]any{"type": "file", "url": "https://example.com/a?b=c#d"},
				map[string]any{"type": "python_object", "object": pick(nil, 1.5, map[string]any{"a": []any{1, "b"}})},
				map[string]any{"type": "text_snippet", "text": text(), "lang": "en"},
				map[string]any{"type": "tool_call_result", "server_id": "s", "tool": "t", "result": pick(nil, "r", map[string]any{})},
			))
		}
		return list
	}
	m := map[string]any{
		"task_id": pick("T1", "T1.2", ".", "a..b", "a/b", "x y", "ü", strings.Repeat("z", 400)), "sender_id": pick("user", "pm-1", "orchestrator", "ü"),
		"recipient_id": pick("user", "qa-1", "open.claw"), "type": pick("message", "delegation_notice", "error_response", "oversight_inquiry"),
	}
	switch m["type"] {
	case "message":
		m["content"] = text()
		if dice.IntN(2) == 0 {
			m["expects_reply"] = pick(true, false)
		}
	case "delegation_notice":
		m["context_summary"] = text()
	case "error_response":
		m["error_message"], m["error_code"] = text(), pick(504, 400, 123, 499, -3, 777, 403, 401)
	case "oversight_inquiry":
		m["inquiry"] = text()
	}
	if dice.IntN(2) == 0 && m["type"] != "error_response" {
		m["attachments"] = things()
	}
	if dice.IntN(2) == 0 {
		m["timestamp"] = pick("2026-03-09T23:00:00Z", "2026-03-09T23:00:00.123456789+02:00")
	}
	if dice.IntN(3) == 0 {
		m["x-mood"], m["trace"] = text(), map[string]any{"id": "7"}
	}
	line, _ := json.Marshal(m)
	return line
}

func TestACAPMessageAlwaysHasATimestamp(t *testing.T) {
	at := time.Date(2026, 3, 9, 23, 0, 0, 5, time.FixedZone("", 7200))
	for _, m := range []envelope.Message{{Act: envelope.Informs, Task: "T"}, {Act: envelope.Informs, Task: "T", Time: at}} {
		line, _ := capCodec(t).Encode(m)
		var said struct{ Timestamp time.Time }
		if err := json.Unmarshal(line, &said); err != nil || said.Timestamp.IsZero() || !bytes.Contains(line, []byte(`Z"}`)) {
			t.Errorf("%s: %v", line, err)
		}
		if !m.Time.IsZero() && !said.Timestamp.Equal(at) {
			t.Errorf("%s does not say %v", line, at)
		}
	}
}

func TestCAPEncodesMessagesOfOtherDialects(t *testing.T) {
	asked := envelope.Task{Type: "analyze", Payload: []byte(`{"hours":24}`), Refs: []envelope.Ref{{Kind: "file", URI: "file:///a/b"}}, Sensitivity: envelope.Internal}
	for _, c := range []struct {
		message envelope.Message
		want    string
	}{
		{
			envelope.Message{Act: envelope.Requests, Task: "m1", Text: "Look.", Type: "analyze", Request: asked},
			`"type":"delegation_notice","task_id":"m1","sender_id":"a","recipient_id":"b","context_summary":"analyze\nLook.","attachments":[{"object":{"hours":24},"type":"python_object"},{"type":"file","path":"/a/b"}]`,
		},
		{
			envelope.Message{Act: envelope.Completes, Task: "m1", Answer: envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: "Done.", Extra: []byte(`{"n":1}`)}}},
			`"type":"message","task_id":"m1","sender_id":"a","recipient_id":"b","content":"Done.","attachments":[{"object":{"summary":"Done.","actions":[],"n":1},"type":"python_object"}]`,
		},
		{
			envelope.Message{Act: envelope.Completes, Task: "m1", Answer: envelope.Result{Output: envelope.Output{Summary: "Done."}, Artifacts: []envelope.Ref{
				{Kind: "report", URI: "file:///box/my%20r.md"}, {Kind: "run_trace", URI: "file:///state/runs/m1"}, {Kind: "stdout", URI: "file:///state/runs/m1/stdout"},
			}}},
			`"content":"Done.","attachments":[{"type":"file","path":"/box/my r.md"}],"timestamp"`,
		},
		{
			envelope.Message{Act: envelope.Fails, Task: "m1", Failure: envelope.Failure{Kind: envelope.BudgetExceeded, Code: "E012", Message: "too much"}},
			`"type":"error_response","task_id":"m1","sender_id":"a","recipient_id":"b","error_code":402,"error_message":"[budget_exceeded] too much"`,
		},
		{envelope.Message{Act: envelope.Stops, Task: "m1"}, `"error_code":499,"error_message":"[cancelled] `},
		{envelope.Message{Act: envelope.Reports, Task: "m1", Data: []byte(`{"pct":40,"note":"reading"}`)}, `"content":"40%: reading"`},
		{envelope.Message{Act: envelope.Inquires, Task: "m1", Text: "Why?"}, `"type":"oversight_inquiry"`},
		{envelope.Message{Act: envelope.Informs, Task: "m1", Type: "note", Data: []byte(`{"a":1}`)}, `"content":"note","attachments":[{"object":{"a":1},"type":"python_object"}]`},
		{
			envelope.Message{Act: envelope.Informs, Task: "m1", Text: "see", Context: envelope.Context{Ref: "notes/a.md", Inline: "short"}},
			`"attachments":[{"type":"file","path":"notes/a.md"},{"type":"text_snippet","text":"short"}]`,
		},
	} {
		c.message.From, c.message.To, c.message.Dialect = "a", []string{"b"}, envelope.CLowl
		line, _ := capCodec(t).Encode(c.message)
		if !strings.Contains(string(line), c.want) {
			t.Errorf("%s said as %s\nwant %s", c.message.Act, line, c.want)
		}
		decodeCAP(t, string(line))
	}
}

func TestCAPReportsItsLosses(t *testing.T) {
	tokens := int64(5)
	m := envelope.Message{
		Dialect: envelope.CLowl, Act: envelope.Requests, ID: "m2", Task: "m2", Cause: "m1", Thread: "pipe", Trace: "t", Deterministic: true,
		From: "a", To: []string{"b"}, Context: envelope.Context{Ref: "x", Hash: strings.Repeat("a", 64)},
		Request: envelope.Task{Sensitivity: envelope.Restricted, Approval: envelope.ApprovalPre, HumanApprover: "ann", AllowedTools: []string{}, Budget: envelope.Budget{Tokens: &tokens}},
	}
	_, lost := capCodec(t).Encode(m)
	if want := []string{"pid", "cid", "tid", "det", "hash", "sensitivity", "budget", "tools", "approval", "approver"}; !slices.Equal(lost, want) {
		t.Errorf("lost %q, want %q", lost, want)
	}
}

// An accepted message can be encoded, and the line reads the same.
func FuzzCAP(f *testing.F) {
	for _, line := range walkThrough(f) {
		f.Add(line)
	}
	f.Add([]byte(said("message", `,"attachments":[ {"type":"python_object",
 "object":{"a" : 1}} ]`)))
	for _, line := range []string{said("message", `,"attachments":[{"type":"file","path":"../x"}]`), said("error_response", ""), `{"content":"x"}`, `{"error_code":1}`} {
		f.Add([]byte(line))
	}
	about := envelope.Task{ID: "T1", Agent: "pm-1", Requester: "orchestrator"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, findings := capCodec(t).Decode(raw, envelope.Strict); !findings.Refused() {
			line, _ := capCodec(t).Encode(m)
			compact := jsontext.Value(slices.Clone(raw)) // without white space
			_ = compact.Compact()
			same(t, line, decodeCAP(t, string(compact)), decodeCAP(t, string(line)))
		}
		received, findings := capCodec(t).Receive(raw, about)
		if findings.Refused() {
			return
		}
		if again := decodeCAP(t, string(received.Raw)); again.Hash != received.Hash || fmt.Sprint(again.Task) != fmt.Sprint(received.Task) {
			t.Errorf("%s was heard as %s about %q, and is %s about %q", raw, received.Hash, received.Task, again.Hash, again.Task)
		}
		if received.From != "pm-1" {
			t.Errorf("%s was heard from %q", raw, received.From)
		}
	})
}
