package strict_test

import (
	"strings"
	"testing"

	"mailboxd/internal/testtools/strict"
)

const (
	clowlGood = `{"clowl":"0.2","mid":"m1","ts":5,"tid":"t","pid":"p","p":"ERR","from":"a","to":["b"],"cid":"c","body":{"t":"error","d":{"code":"E003","msg":"","retry":true}},"ctx":{"ref":"r","hash":"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"},"det":true}`
	capGood   = `{"type":"error_response","task_id":"T1","sender_id":"a","recipient_id":"b","error_code":504,"error_message":"m","timestamp":"2026-03-09T23:00:00Z"}`
	capNotice = `{"type":"delegation_notice","task_id":"T1","sender_id":"a","recipient_id":"b","context_summary":"m","attachments":[{"type":"file","path":"a"}],"timestamp":"2026-03-09T23:00:00Z"}`
)

const clutchGood = `{"v":"clutch/0.1","id":"m1","ts":"2026-02-01T13:20:11.123Z","thread_id":"th","run_id":"r","task_id":"t1","parent_task_id":null,` +
	`"trace":{"trace_id":"t","span_id":"s"},"from":{"agent_id":"agent:ken","role":"worker"},"to":[{"agent_id":"group:g"}],"type":"task.error",` +
	`"payload":{"code":"TIMEOUT","message":"","retryable":true,"details":{}},"requires":["a"],"prefers":[],` +
	`"security":{"auth":{"scheme":"s","kid":"k","sig":"x"},"policy":{"sandbox":true,"tool_allowlist":[],"network":"none"}},` +
	`"attachments":[{"kind":"url","url":"u"}],"idempotency_key":"i","attempt":1,"meta":{}}`

// clutchWith is a message of another type.
func clutchWith(word, payload string) string {
	was := `{"code":"TIMEOUT","message":"","retryable":true,"details":{}}`
	return strings.Replace(strings.Replace(clutchGood, was, payload, 1), "task.error", word, 1)
}

// Each line is good but for one thing.
func TestEachRuleRefusesWhatBreaksIt(t *testing.T) {
	for _, c := range []struct {
		check     func([]byte) error
		good      string
		old, made string
	}{
		{strict.CLowl, clowlGood, `{"clowl"`, `{"x":1,"clowl"`},
		{strict.CLowl, clowlGood, `{"clowl"`, `{"mid":"m1","clowl"`},
		{strict.CLowl, clowlGood, `"0.2"`, `"0.3"`},
		{strict.CLowl, clowlGood, `"0.2"`, `0.2`},
		{strict.CLowl, clowlGood, `"mid":"m1",`, ``},
		{strict.CLowl, clowlGood, `"m1"`, `"` + strings.Repeat("m", 129) + `"`},
		{strict.CLowl, clowlGood, `"pid":"p"`, `"pid":null`},
		{strict.CLowl, clowlGood, `"ts":5`, `"ts":5.0`},
		{strict.CLowl, clowlGood, `"ts":5`, `"ts":1709078400000`},
		{strict.CLowl, clowlGood, `"ts":5`, `"ts":true`},
		{strict.CLowl, clowlGood, `"ERR"`, `"err"`},
		{strict.CLowl, clowlGood, `["b"]`, `[]`},
		{strict.CLowl, clowlGood, `["b"]`, `["b","*"]`},
		{strict.CLowl, clowlGood, `"cid":"c"`, `"cid":""`},
		{strict.CLowl, clowlGood, `"body":{`, `"body":{"x":1,`},
		{strict.CLowl, clowlGood, `"t":"error"`, `"t":"search"`},
		{strict.CLowl, clowlGood, `"E003"`, `"E017"`},
		{strict.CLowl, clowlGood, `"E003"`, `"E002"`},
		{strict.CLowl, clowlGood, `"retry":true`, `"retry":1`},
		{strict.CLowl, clowlGood, `"msg":"",`, ``},
		{strict.CLowl, clowlGood, `"ref":"r"`, `"ref":null`},
		{strict.CLowl, clowlGood, `"2c26`, `"2C26`},
		{strict.CLowl, clowlGood, `"ref":"r"`, `"inline":"` + strings.Repeat("a", 2001) + `"`},
		{strict.CLowl, clowlGood, `"det":true`, `"det":1`},
		{strict.CLowl, clowlGood, `"ERR"`, `"DLGT"`},
		{strict.CLowl, clowlGood, `"ERR"`, `"CAPS"`},
		{strict.CLowl, clowlGood, `true}`, `true} {}`},
		{strict.CLowl, clowlGood, `,"det"`, ",\n\"det\""},
		{strict.CAP, capGood, `{"type"`, `{"x":1,"type"`},
		{strict.CAP, capGood, `"error_response"`, `"chat"`},
		{strict.CAP, capGood, `504`, `"504"`},
		{strict.CAP, capGood, `504`, `504.0`},
		{strict.CAP, capGood, `"T1"`, `""`},
		{strict.CAP, capGood, `,"error_message":"m"`, ``},
		{strict.CAP, capGood, `23:00:00Z`, `23:00:00+01:00`},
		{strict.CAP, capGood, `,"timestamp":"2026-03-09T23:00:00Z"`, ``},
		{strict.CAP, capNotice, `,"attachments":[{"type":"file","path":"a"}]`, ``},
		{strict.CAP, capNotice, `"type":"file"`, `"type":"pickle"`},
		{strict.CAP, capNotice, `"path":"a"`, `"path":"a","url":"b"`},
		{strict.CAP, capNotice, `"type":"file","path":"a"`, `"type":"tool_call_result","tool":"t"`},
		{strict.Clutch, clutchGood, `{"v"`, `{"x":1,"v"`},
		{strict.Clutch, clutchGood, `{"v"`, `{"id":"m1","v"`},
		{strict.Clutch, clutchGood, `clutch/0.1`, `clutch/0.2`},
		{strict.Clutch, clutchGood, `"id":"m1",`, ``},
		{strict.Clutch, clutchGood, `"m1"`, `""`},
		{strict.Clutch, clutchGood, `11.123Z`, `11Z`},
		{strict.Clutch, clutchGood, `11.123Z`, `11.123+01:00`},
		{strict.Clutch, clutchGood, `"parent_task_id":null,`, ``},
		{strict.Clutch, clutchGood, `"parent_task_id":null`, `"parent_task_id":"t1"`},
		{strict.Clutch, clutchGood, `"agent:ken"`, `"ken"`},
		{strict.Clutch, clutchGood, `"agent:ken"`, `"group:ken"`},
		{strict.Clutch, clutchGood, `"group:g"`, `"g"`},
		{strict.Clutch, clutchGood, `"to":[{"agent_id":"group:g"}]`, `"to":null`},
		{strict.Clutch, clutchGood, `"task.error"`, `"task.done"`},
		{strict.Clutch, clutchGood, `"task.error"`, `"chat.system"`},
		{strict.Clutch, clutchGood, `"code":"TIMEOUT",`, ``},
		{strict.Clutch, clutchGood, `"TIMEOUT"`, `"timeout"`},
		{strict.Clutch, clutchGood, `"retryable":true`, `"retryable":1`},
		{strict.Clutch, clutchGood, `"details":{}`, `"details":[]`},
		{strict.Clutch, clutchGood, `"requires":["a"]`, `"requires":[""]`},
		{strict.Clutch, clutchGood, `"attempt":1`, `"attempt":0`},
		{strict.Clutch, clutchGood, `"attempt":1`, `"attempt":1.0`},
		{strict.Clutch, clutchGood, `"sandbox":true`, `"sandbox":"yes"`},
		{strict.Clutch, clutchGood, `"network":"none"`, `"network":"all"`},
		{strict.Clutch, clutchGood, `"kind":"url"`, `"kind":"file"`},
		{strict.Clutch, clutchGood, `"url":"u"`, `"ref":"u"`},
		{strict.Clutch, clutchGood, `"meta":{}`, `"meta":[]`},
		{strict.Clutch, clutchGood, `"span_id"`, `"span"`},
		{strict.Clutch, clutchGood, `"span_id":"s"`, `"span_id":""`},
		{strict.Clutch, clutchGood, `"sig"`, `"signature"`},
		{strict.Clutch, clutchWith("task.result", `{"success":true}`), `true`, `false`},
		{strict.Clutch, clutchWith("task.progress", `{"status":"running","progress":50}`), `50`, `101`},
		{strict.Clutch, clutchWith("task.progress", `{"status":"running"}`), `"running"`, `""`},
		{strict.Clutch, clutchWith("agent.register", `{"v":"clutch/0.1","agent_id":"agent:a","endpoints":{},"capabilities":[{"id":"skill:x"}]}`), `"id":"skill:x"`, `"name":"x"`},
		{strict.Clutch, clutchWith("routing.decision", `{"selected":"agent:a","candidates":["agent:a"],"reason":"r","scores":{}}`), `"reason":"r",`, ``},
		{strict.Clutch, clutchWith("routing.failure", `{"reason":"r"}`), `"r"`, `1`},
		{strict.Clutch, clutchWith("tool.call", `{"tool":"t"}`), `"tool":"t"`, `"tool":""`},
	} {
		if err := c.check([]byte(c.good)); err != nil {
			t.Fatalf("%s: %v", c.good, err)
		}
		bad := strings.Replace(c.good, c.old, c.made, 1)
		if bad == c.good {
			t.Fatalf("%s has no %s", c.good, c.old)
		}
		if c.check([]byte(bad)) == nil {
			t.Errorf("takes %s", bad)
		}
	}
}

func TestALineIsHeldToTheProtocolWhoseMarkItBears(t *testing.T) {
	const ainlGood = `{"schema_version":"1.0","task_id":"t1"}`
	for _, good := range []string{clowlGood, capGood, capNotice, ainlGood, clutchGood} {
		if err := strict.Line([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		strings.Replace(clowlGood, `"E003"`, `"E017"`, 1), strings.Replace(capGood, "504", `"504"`, 1), strings.Replace(clowlGood, "{", `{"sender_id":"a",`, 1),
		strings.Replace(clutchGood, "TIMEOUT", "", 1), `{"schema_version":"1.0"}`, ainlGood + ainlGood, `[]`, `null`, "", "{",
	} {
		if strict.Line([]byte(bad)) == nil {
			t.Errorf("takes %s", bad)
		}
	}
}
