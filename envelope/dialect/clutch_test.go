package dialect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/testtools/strict"
)

// clutchLine is a task.request with nothing left out.
const clutchLine = `{"v":"clutch/0.1","id":"msg_1","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"task-1",` +
	`"parent_task_id":null,"trace":{"trace_id":"tr_1","span_id":"sp_1"},"from":{"agent_id":"agent:ken","role":"worker"},` +
	`"to":[{"agent_id":"agent:radar"}],"type":"task.request","domain":"research","payload_type":"research.query.v1",` +
	`"schema_ref":"schema://clutch/research/query@1",` +
	`"payload":{"title":"Find it","description":"All of it","n":1.50,"constraints":{"max_runtime_sec":1.5,"max_tokens":500,"max_cost":1.25}},` +
	`"requires":["skill:research"],"prefers":["tool:browser","domain:fintech"],` +
	`"security":{"auth":{"scheme":"ed25519","kid":"key_01","sig":"c2ln"},"policy":{"sandbox":true,"tool_allowlist":["mcp:browser"],"network":"none"}},` +
	`"attachments":[{"kind":"artifact_ref","ref":"artifact:report_456"},{"kind":"inline","content":{"a":1},"mime_type":"application/json"},{"kind":"url","url":"https://example.com/a"}],` +
	`"idempotency_key":"idem_1","attempt":2,"meta":{"framework":"langgraph","workflow":"product","step":"research"}}`

func clutchCodec(t testing.TB) dialect.Codec {
	t.Helper()
	c, ok := dialect.Of(envelope.Clutch)
	if !ok {
		t.Fatal("no codec reads Clutch")
	}
	return c
}

func decodeClutch(t testing.TB, line string) envelope.Message {
	t.Helper()
	m, findings := clutchCodec(t).Decode([]byte(line), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("%s: %v", line, findings)
	}
	return m
}

// clutchShapes are the rules for one message, one field at a time. Want is the code and the
// field of the first refusal, or "" for none, or "warning".
var clutchShapes = []struct{ rule, path, value, want string }{
	{"CLUTCH-01", "v", `"clutch/0.2"`, `UNSUPPORTED_VERSION v: is another version, only "clutch/0.1" is supported`},
	{"CLUTCH-01", "v", `"clutch/"`, `UNSUPPORTED_VERSION v: is another version, only "clutch/0.1" is supported`},
	{"CLUTCH-01", "v", `0.1`, `INVALID_MESSAGE v: must be the string "clutch/0.1"`},
	{"CLUTCH-01", "v", ``, `INVALID_MESSAGE v: required`},
	{"CLUTCH-02", "id", ``, "INVALID_MESSAGE id: required"},
	{"CLUTCH-02", "id", `""`, "INVALID_MESSAGE id: must not be empty"},
	{"CLUTCH-02", "id", `7`, "INVALID_MESSAGE id: must be a string"},
	{"CLUTCH-02", "id", `"` + strings.Repeat("m", 512) + `"`, ""},
	{"CLUTCH-02", "id", `"` + strings.Repeat("m", 513) + `"`, "INVALID_MESSAGE id: is longer than 512 bytes"},
	{"CLUTCH-03", "ts", ``, "INVALID_MESSAGE ts: required"},
	{"CLUTCH-03", "ts", `"2026-02-01T14:20:11.123+01:00"`, ""},
	{"CLUTCH-03", "ts", `"2026-02-01T14:20:11+0100"`, ""},
	{"CLUTCH-03", "ts", `"2026-02-01T13:20:11"`, `INVALID_MESSAGE ts: must be a time of ISO 8601 with a zone such as "2026-02-01T13:20:11.123Z"`},
	{"CLUTCH-03", "ts", `"2026-02-01"`, `INVALID_MESSAGE ts: must be a time of ISO 8601 with a zone such as "2026-02-01T13:20:11.123Z"`},
	{"CLUTCH-03", "ts", `1709078400`, `INVALID_MESSAGE ts: must be a string`},
	{"CLUTCH-04", "thread_id", ``, "INVALID_MESSAGE thread_id: required"},
	{"CLUTCH-05", "run_id", ``, "INVALID_MESSAGE run_id: required"},
	{"CLUTCH-05", "run_id", `"a\u202eb"`, "INVALID_MESSAGE run_id: contains a control or invisible character"},
	{"CLUTCH-06", "task_id", ``, "INVALID_MESSAGE task_id: required"},
	{"CLUTCH-06", "task_id", `"a/../b"`, ""},
	{"CLUTCH-07", "parent_task_id", ``, ""},
	{"CLUTCH-07", "parent_task_id", `"task-0"`, ""},
	{"CLUTCH-07", "parent_task_id", `7`, "INVALID_MESSAGE parent_task_id: must be a string"},
	{"CLUTCH-08", "trace", ``, ""},
	{"CLUTCH-08", "trace", `"tr_1"`, "INVALID_MESSAGE trace: must be an object"},
	{"CLUTCH-08", "trace.span_id", `7`, "INVALID_MESSAGE trace.span_id: must be a string"},
	{"CLUTCH-09", "from", ``, "INVALID_MESSAGE from: required"},
	{"CLUTCH-09", "from", `"agent:ken"`, "INVALID_MESSAGE from: must be an object"},
	{"CLUTCH-09", "from.agent_id", ``, "INVALID_MESSAGE from.agent_id: required"},
	{"CLUTCH-09", "from.agent_id", `"agent:"`, "INVALID_MESSAGE from.agent_id: has no name after its prefix"},
	{"CLUTCH-09", "from.agent_id", `"group:g"`, "INVALID_MESSAGE from.agent_id: must be an agent, not a group"},
	{"CLUTCH-09", "from.agent_id", `"ken"`, `warning from.agent_id: should begin with "agent:"`},
	{"CLUTCH-09", "from.role", `7`, "INVALID_MESSAGE from.role: must be a string"},
	{"CLUTCH-10", "to", ``, "INVALID_MESSAGE to: required"},
	{"CLUTCH-10", "to", `[]`, ""},
	{"CLUTCH-10", "to", `"agent:ken"`, "INVALID_MESSAGE to: must be a list"},
	{"CLUTCH-10", "to", `["agent:ken"]`, "INVALID_MESSAGE to[0]: must be an object"},
	{"CLUTCH-10", "to", `[{"agent_id":"agent:*"}]`, `INVALID_MESSAGE to[0].agent_id: must not be "*"`},
	{"CLUTCH-10", "to", `[{"agent_id":"group:g"}]`, ""},
	{"CLUTCH-11", "type", ``, "INVALID_MESSAGE type: required"},
	{"CLUTCH-11", "type", `7`, "INVALID_MESSAGE type: must be a string"},
	{"CLUTCH-11", "type", `"task.done"`, "INVALID_MESSAGE type: must be one of agent.heartbeat, agent.register, agent.update, chat.message, chat.system, routing.decision, " +
		"routing.failure, task.accept, task.cancel, task.error, task.progress, task.request, task.result, task.timeout, tool.call, tool.error, tool.result"},
	{"CLUTCH-12", "domain", `7`, "INVALID_MESSAGE domain: must be a string"},
	{"CLUTCH-12", "domain", `"anything at all"`, ""},
	{"CLUTCH-13", "payload_type", `7`, "INVALID_MESSAGE payload_type: must be a string"},
	{"CLUTCH-14", "schema_ref", `7`, "INVALID_MESSAGE schema_ref: must be a string"},
	{"CLUTCH-15", "payload", ``, "INVALID_MESSAGE payload: required"},
	{"CLUTCH-15", "payload", `null`, ""},
	{"CLUTCH-15", "payload", `[1, 2]`, ""},
	{"CLUTCH-15", "payload.constraints", `7`, "INVALID_MESSAGE payload.constraints: must be an object"},
	{"CLUTCH-15", "payload.constraints.max_tokens", `1.5`, "INVALID_MESSAGE payload.constraints.max_tokens: must be a whole number, 0 or more"},
	{"CLUTCH-15", "payload.constraints.max_cost", `-1`, "INVALID_MESSAGE payload.constraints.max_cost: must be a number of dollars, 0 or more"},
	{"CLUTCH-15", "payload.constraints.max_cost", `1e400`, "INVALID_MESSAGE payload.constraints.max_cost: must be a number of dollars, 0 or more"},
	{"CLUTCH-15", "payload.constraints.max_cost", `0.129`, "warning payload.constraints.max_cost: has a fraction of a cent, which is left out"},
	{"CLUTCH-15", "payload.constraints.max_runtime_sec", `0`, "INVALID_MESSAGE payload.constraints.max_runtime_sec: must be a number of seconds, more than 0"},
	{"CLUTCH-16", "requires", `"skill:x"`, "INVALID_MESSAGE requires: must be a list"},
	{"CLUTCH-16", "requires", `["a",7]`, "INVALID_MESSAGE requires[1]: must be a string"},
	{"CLUTCH-17", "prefers", `[""]`, "INVALID_MESSAGE prefers[0]: must not be empty"},
	{"CLUTCH-18", "security", `7`, "INVALID_MESSAGE security: must be an object"},
	{"CLUTCH-18", "security.auth.sig", `7`, "INVALID_MESSAGE security.auth.sig: must be a string"},
	{"CLUTCH-18", "security.policy.sandbox", `"yes"`, "INVALID_MESSAGE security.policy.sandbox: must be true or false"},
	{"CLUTCH-18", "security.policy.tool_allowlist", `["a,b"]`, "INVALID_MESSAGE security.policy.tool_allowlist: must not hold a name with a comma"},
	{"CLUTCH-18", "security.policy.network", `"some"`, `INVALID_MESSAGE security.policy.network: must be "none", "egress-restricted" or "egress-allowed"`},
	{"CLUTCH-18", "security.policy.more", `1`, "warning security.policy.more: is not a field we know"},
	{"CLUTCH-19", "attachments", `{}`, "INVALID_MESSAGE attachments: must be a list"},
	{"CLUTCH-19", "attachments", `[{"kind":"file"}]`, `INVALID_MESSAGE attachments[0].kind: must be "artifact_ref", "inline" or "url"`},
	{"CLUTCH-19", "attachments", `[{"kind":"artifact_ref"}]`, "INVALID_MESSAGE attachments[0].ref: required"},
	{"CLUTCH-19", "attachments", `[{"kind":"inline"}]`, "INVALID_MESSAGE attachments[0].content: required"},
	{"CLUTCH-20", "idempotency_key", `7`, "INVALID_MESSAGE idempotency_key: must be a string"},
	{"CLUTCH-21", "attempt", ``, ""},
	{"CLUTCH-21", "attempt", `0`, "INVALID_MESSAGE attempt: must be a whole number, 1 or more"},
	{"CLUTCH-21", "attempt", `1.5`, "INVALID_MESSAGE attempt: must be a whole number, 1 or more"},
	{"CLUTCH-21", "attempt", `"1"`, "INVALID_MESSAGE attempt: must be a whole number, 1 or more"},
	{"CLUTCH-22", "meta", `7`, "INVALID_MESSAGE meta: must be an object"},
	{"CLUTCH-22", "meta.anything", `7`, ""},
	{"CLUTCH-22", "more", `7`, "warning more: is not a field we know"},
	{"CLUTCH-23", "parent_task_id", `"task-1"`, "INVALID_MESSAGE parent_task_id: must not be the task itself"},
}

func TestClutchReadsEachFieldAsItsRuleSays(t *testing.T) {
	for _, c := range clutchShapes {
		_, findings := clutchCodec(t).Decode([]byte(set(t, clutchLine, c.path, c.value)), envelope.Strict)
		got := ""
		for _, f := range findings {
			code, _ := dialect.ClutchCode(f.Kind)
			if f.Warning() {
				code = "warning"
			}
			if got == "" || strings.HasPrefix(got, "warning") && !f.Warning() {
				got = code + " " + f.String()
			}
		}
		if got != c.want {
			t.Errorf("%s: %s = %s\n got %q\nwant %q", c.rule, c.path, c.value, got, c.want)
		}
	}
}

func TestClutchReadsAllOfARequest(t *testing.T) {
	m := decodeClutch(t, clutchLine)
	task := m.Request
	if m.Act != envelope.Requests || m.ID != "msg_1" || m.Task != "task-1" || m.Thread != "thr_1" || m.Trace != "run_1" || m.From != "ken" ||
		!cmp.Equal(m.To, []string{"radar"}) || !m.Time.Equal(time.Date(2026, 2, 1, 13, 20, 11, 123e6, time.UTC)) {
		t.Errorf("the message is %+v", m)
	}
	if task.ID != "task-1" || task.Agent != "radar" || task.Requester != "ken" || task.Type != "research.query.v1" || task.Description != "Find it\nAll of it" ||
		string(task.Payload) != value(clutchLine, "payload") {
		t.Errorf("the task is %+v", task)
	}
	if *task.Budget.Tokens != 500 || *task.Budget.USDCents != 125 || !cmp.Equal(task.AllowedTools, []string{"mcp:browser"}) {
		t.Errorf("its limits are %+v, %q", task.Budget, task.AllowedTools)
	}
	if want := []envelope.Ref{{Kind: "artifact_ref", URI: "artifact:report_456"}, {Kind: "url", URI: "https://example.com/a"}}; !cmp.Equal(task.Refs, want) {
		t.Errorf("its references are %+v; want %+v", task.Refs, want)
	}
	sandbox := true
	want := &envelope.ClutchPart{
		Type: "task.request", TaskID: "task-1", RunID: "run_1", Role: "worker", Recipients: []envelope.Recipient{{Name: "radar"}},
		Domain: "research", PayloadType: "research.query.v1", SchemaRef: "schema://clutch/research/query@1",
		Requires: []string{"skill:research"}, Prefers: []string{"tool:browser", "domain:fintech"},
		Trace: envelope.Trace{TraceID: "tr_1", SpanID: "sp_1"}, Auth: envelope.Signature{Scheme: "ed25519", KeyID: "key_01", Value: "c2ln"},
		SecurityPolicy: envelope.SecurityPolicy{Sandbox: &sandbox, ToolAllowlist: []string{"mcp:browser"}, Network: envelope.NetworkNone},
		Attachments: []envelope.ClutchAttachment{
			{Kind: "artifact_ref", Ref: "artifact:report_456"},
			{Kind: "inline", Content: []byte(`{"a":1}`), MIMEType: "application/json"},
			{Kind: "url", URL: "https://example.com/a"},
		},
		IdempotencyKey: "idem_1", Attempt: 2, MaxRuntime: 1500 * time.Millisecond, Workflow: "product", Step: "research",
		Payload: []byte(value(clutchLine, "payload")), Meta: []byte(value(clutchLine, "meta")),
	}
	if diff := cmp.Diff(want, m.Clutch); diff != "" || task.Clutch != m.Clutch {
		t.Errorf("what only Clutch says (-want +got):\n%s", diff)
	}
}

// CLUTCH-10: without a recipient, and for a group, the router chooses the agent.
func TestClutchLeavesTheAgentToTheRouter(t *testing.T) {
	for to, routed := range map[string]bool{
		`[]`: true, `[{"agent_id":"agent:router"}]`: true, `[{"agent_id":"agent:orchestrator"}]`: true, `[{"agent_id":"group:g"}]`: true,
		`[{"agent_id":"agent:radar"}]`: false, `[{"agent_id":"agent:a"},{"agent_id":"agent:b"}]`: false,
	} {
		m := decodeClutch(t, set(t, clutchLine, "to", to))
		if got := m.Request.Clutch.Routed(); got != routed || routed && m.Request.Agent != "" {
			t.Errorf("to %s: Routed() = %v, agent %q", to, got, m.Request.Agent)
		}
	}
	if new(envelope.Task).Clutch.Routed() {
		t.Error("a task of another dialect is left to the router")
	}
}

// CLUTCH-06: a task id that is no safe file name is replaced by a digest.
func TestClutchNamesATaskByADigestWhereItsIDIsNoFileName(t *testing.T) {
	m := decodeClutch(t, set(t, clutchLine, "task_id", `"task_01HX..."`))
	if !strings.HasPrefix(string(m.Task), "h-") || m.Request.ID != m.Task || m.Clutch.TaskID != "task_01HX..." {
		t.Errorf("task %q, request %q, said %q", m.Task, m.Request.ID, m.Clutch.TaskID)
	}
}

// The examples of the seed's sections 1.1, 1.4, 4.3 and 5.4 (CLUTCH-09, -24, -36, -83).
func TestClutchReadsTheMessagesOfItsSpecification(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "clutch-v0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	want := []envelope.Act{envelope.Completes, envelope.Announces, envelope.Routes, envelope.Fails}
	for i, line := range lines {
		if m := decodeClutch(t, line); m.Act != want[i] {
			t.Errorf("line %d is %s; want %s", i+1, m.Act, want[i])
		}
	}
	result, register, failure := decodeClutch(t, lines[0]), decodeClutch(t, lines[1]), decodeClutch(t, lines[3])
	if a := result.Answer; a.Status != envelope.OK || a.Output.Summary != "Market analysis complete" || !strings.Contains(string(a.Output.Extra), `"citations"`) {
		t.Errorf("the answer is %+v", a)
	}
	if want := []string{"research", "tool:mcp"}; !cmp.Equal(register.Supports, want) {
		t.Errorf("supports %q; want %q", register.Supports, want)
	}
	if f := failure.Failure; f.Kind != envelope.DependencyFailed || f.Code != "TOOL_UNAVAILABLE" || !failure.Answer.Error.Again {
		t.Errorf("the failure is %+v, %+v", f, failure.Answer.Error)
	}
}

// CLUTCH-52: the command hash depends on the command, not on the message that has it.
func TestTheCommandHashLeavesOutWhatDiffersEachTimeACommandIsSent(t *testing.T) {
	hash := func(line string) string { return dialect.CommandHash(decodeClutch(t, line)) }
	same := clutchLine
	for path, value := range map[string]string{
		"id": `"msg_2"`, "ts": `"2026-02-01T13:20:12Z"`, "attempt": `3`, "trace": ``, "idempotency_key": `"other"`,
		"task_id": `"task-2"`, "parent_task_id": `"task-0"`, "security.auth": ``,
	} {
		if same = set(t, same, path, value); hash(same) != hash(clutchLine) {
			t.Errorf("%s changes the hash", path)
		}
	}
	for path, value := range map[string]string{
		"run_id": `"run_2"`, "to": `[]`, "payload.title": `"Other"`, "security.policy.sandbox": `false`, "requires": ``, "meta.more": "1",
	} {
		if hash(set(t, clutchLine, path, value)) == hash(clutchLine) {
			t.Errorf("%s does not change the hash", path)
		}
	}
	if dialect.CommandHash(envelope.Message{Raw: []byte(ainlLine), Dialect: envelope.AINL}) != "" {
		t.Error("a message of AINL has a command hash")
	}
}

// clutchSaid are messages of each type of Clutch, and their acts (CLUTCH-11, -31 to -36).
var clutchSaid = []struct {
	word, payload, intent string
	act                   envelope.Act
	text                  string
}{
	{"task.request", `{"title":"a","description":"b"}`, "", envelope.Requests, "a\nb"},
	{"task.request", `"do it"`, "", envelope.Requests, "do it"},
	{"task.accept", `{}`, "", envelope.Accepts, ""},
	{"task.progress", `{"status":"working","progress":40,"message":"reading"}`, "", envelope.Reports, "reading"},
	{"task.progress", `{"status":"waiting","message":"for ann"}`, "", envelope.Waits, "for ann"},
	{"task.result", `{"findings":["a"],"citations":[]}`, "", envelope.Completes, ""},
	{"task.result", `{"success":true,"output":{"findings":["a"]},"summary":"found"}`, "", envelope.Completes, "found"},
	{"task.result", `{"success":false,"summary":"not found"}`, "", envelope.Fails, "not found"},
	{"task.result", `"found"`, "", envelope.Completes, "found"},
	{"task.error", `{"code":"BUDGET_EXCEEDED","message":"m","retryable":false}`, "", envelope.Fails, "m"},
	{"task.timeout", `{"message":"too long"}`, "", envelope.Fails, "too long"},
	{"task.cancel", `{"reason":"enough"}`, "", envelope.Cancels, "enough"},
	{"task.cancel", `{"status":"cancelled","message":"stopped"}`, "", envelope.Stops, "stopped"},
	{"task.cancel", `{"status":"cancelled","code":"CANCELLED","message":"stopped"}`, "", envelope.Fails, "stopped"},
	{"chat.message", `{"text":"hello"}`, "", envelope.Informs, "hello"},
	{"chat.message", `{"text":"how far?"}`, "status", envelope.Asks, "how far?"},
	{"chat.message", `{"state":"running"}`, "status", envelope.ReportsStatus, ""},
	{"chat.message", `{"text":"not yet"}`, "oversight", envelope.Inquires, "not yet"},
	{"chat.message", `{"text":"which one"}`, "question", envelope.Informs, "which one"},
	{"chat.system", `{"text":"hello"}`, "", envelope.Informs, "hello"},
	{"tool.call", `{"tool":"mcp:browser","args":{"url":"x"}}`, "", envelope.Calls, "mcp:browser"},
	{"tool.result", `{"content":[]}`, "", envelope.Returns, ""},
	{"tool.error", `{"code":"TOOL_UNAVAILABLE","message":"gone","retryable":true}`, "", envelope.FailsTool, "gone"},
	{"tool.error", `{"code":"TOOL_GONe","message":"gone","retryable":true}`, "", envelope.FailsTool, "gone"},
	{"tool.error", `{"code":"TOOL_404","message":"gone","retryable":true,"details":{"url":"u"}}`, "", envelope.FailsTool, "gone"},
	{"agent.register", `{"v":"clutch/0.1","agent_id":"agent:ken","capabilities":[{"id":"skill:research"},{"id":"tool:mcp"}]}`, "", envelope.Announces, ""},
	{"agent.update", `{"v":"clutch/0.1","agent_id":"agent:ken","capabilities":[]}`, "", envelope.Updates, ""},
	{"agent.heartbeat", `{"status":"online"}`, "", envelope.SendsHeartbeat, ""},
	{"routing.decision", `{"selected":"agent:ken","candidates":["agent:ken"],"reason":"r","scores":{"agent:ken":0.92}}`, "", envelope.Routes, "r"},
	{"routing.failure", `{"reason":"nobody"}`, "", envelope.FailsToRoute, "nobody"},
}

func clutchSaying(t testing.TB, word, payload, intent string) string {
	line := `{"v":"clutch/0.1","id":"msg_2","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"task-1","parent_task_id":null,` +
		`"from":{"agent_id":"agent:ken"},"to":[{"agent_id":"agent:oscar"}],"type":"` + word + `","payload":` + payload + `,"meta":{"causation_id":"msg_1"}}`
	if intent != "" {
		line = set(t, line, "meta.intent", `"`+intent+`"`)
	}
	return line
}

func TestClutchReadsMessagesOfEachType(t *testing.T) {
	for _, c := range clutchSaid {
		m := decodeClutch(t, clutchSaying(t, c.word, c.payload, c.intent))
		if m.Act != c.act || m.Text != c.text || m.Cause != "msg_1" || m.Task != "task-1" {
			t.Errorf("%s %s is %s %q about %q", c.word, c.payload, m.Act, m.Text, m.Task)
		}
	}
}

// A message of each type is encoded as it came, except for the members that every reader needs.
func TestEncodingADecodedClutchMessageLosesNothing(t *testing.T) {
	for _, c := range clutchSaid {
		raw := clutchSaying(t, c.word, c.payload, c.intent)
		m := decodeClutch(t, raw)
		m.Raw, m.Request.Raw = nil, nil
		said, lost := clutchCodec(t).Encode(m)
		if err := strict.Clutch(said); err != nil {
			t.Errorf("%s: %v", said, err)
		}
		again := decodeClutch(t, string(said))
		opts := cmp.Options{
			cmpopts.EquateEmpty(),
			cmpopts.IgnoreFields(envelope.Message{}, "Raw", "Hash", "Data"), cmpopts.IgnoreFields(envelope.Task{}, "Raw", "Hash"),
			cmpopts.IgnoreFields(envelope.ClutchPart{}, "Payload", "Type", "Meta"), cmpopts.IgnoreFields(envelope.Output{}, "Extra"),
		}
		if diff := cmp.Diff(m, again, opts); diff != "" || len(lost) > 0 {
			t.Errorf("%s\nbecame %s (lost %v): %s", raw, said, lost, diff)
		}
	}
	m := decodeClutch(t, clutchLine)
	m.Raw = nil
	said, _ := clutchCodec(t).Encode(m)
	want, _ := envelope.ContentHash([]byte(set(t, clutchLine, "security.auth", ``)))
	if got, _ := envelope.ContentHash(said); got != want {
		t.Errorf("a request became %s", said)
	}
}

// Each form that the prompt shows is read, and it is short.
func TestTheClutchPromptShowsOnlyFormsThatAreRead(t *testing.T) {
	prompt, shown := dialect.ClutchPrompt(), 0
	for line := range strings.Lines(prompt) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		shown++
		said, findings := dialect.ReceiveAll(envelope.Clutch, []byte(line), envelope.Task{ID: "t1", Agent: "ken", Requester: "ann"})
		if len(said) != 1 || len(findings) > 0 {
			t.Errorf("%s is heard as %+v: %v", line, said, findings)
		}
	}
	if words := len(strings.Fields(prompt)); shown != 1 || words > 250 {
		t.Errorf("the prompt shows %d messages in %d words", shown, words)
	}
}

// An agent leaves out the members of the runtime, and must not use the name of another agent
// (CLUTCH-09).
func TestReceivingClutchSuppliesTheMembersOfTheRuntime(t *testing.T) {
	request := decodeClutch(t, clutchLine).Request
	said, findings := dialect.ReceiveAll(envelope.Clutch, []byte(`{"type":"task.result","to":[{"agent_id":"agent:boss"}],"payload":{"summary":"s"}}`), request)
	if findings.Refused() || len(said) != 1 {
		t.Fatal(findings)
	}
	m := said[0]
	if err := strict.Clutch(m.Raw); err != nil {
		t.Errorf("%s: %v", m.Raw, err)
	}
	if m.Thread != "thr_1" || m.Clutch.RunID != "run_1" || m.Task != "task-1" || m.From != "radar" || !cmp.Equal(m.To, []string{"ken"}) || m.Clutch.Attempt != 2 {
		t.Errorf("heard %s", m.Raw)
	}
	if _, findings = dialect.ReceiveAll(envelope.Clutch, []byte(`{"type":"task.result","from":{"agent_id":"agent:boss"},"payload":{}}`), request); findings.Kind() != envelope.IdentityMismatch {
		t.Errorf("another sender: %v", findings)
	}
	if _, findings = dialect.ReceiveAll(envelope.Clutch, []byte(`{"summary":"no message"}`), request); findings.Kind() != envelope.OutputInvalid {
		t.Errorf("an object without a type: %v", findings)
	}
}

// CLUTCH-23: a delegation has the run of its task, its parent, and always the same name.
func TestReceivingClutchGivesDelegatedWorkAlwaysTheSameName(t *testing.T) {
	request := decodeClutch(t, clutchLine).Request
	handOver := func() envelope.Message {
		said, findings := dialect.ReceiveAll(envelope.Clutch, []byte(`{"type":"task.request","to":[{"agent_id":"agent:muse"}],"payload":{"title":"x"}}`), request)
		if findings.Refused() || len(said) != 1 {
			t.Fatal(findings)
		}
		return said[0]
	}
	first, second := handOver(), handOver()
	if first.Act != envelope.Delegates || first.Tie != envelope.Assist || first.Clutch.Parent != "task-1" || first.Clutch.RunID != "run_1" || first.Task == "task-1" || first.Task != second.Task {
		t.Errorf("heard %s", first.Raw)
	}
}

// CLUTCH-83: each kind of error is encoded with its code, and read as the same kind.
func TestClutchCarriesTheExactKindOfAnError(t *testing.T) {
	for _, kind := range everyKind(t) {
		line, _ := clutchCodec(t).Encode(envelope.Message{Act: envelope.Fails, Task: "t1", From: "a", To: []string{"b"}, Failure: dialect.FailureOf(kind, "m")})
		if err := strict.Clutch(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		m := decodeClutch(t, string(line))
		code, _ := dialect.ClutchCode(kind)
		if m.Failure.Kind != kind || m.Failure.Code != code || m.Answer.Error.Kind != kind || m.Answer.Error.Final || m.Answer.Error.Again {
			t.Errorf("%s became %+v, %+v", kind, m.Failure, m.Answer.Error)
		}
	}
	for code, want := range map[string]envelope.Kind{
		"RATE_LIMITED": envelope.Capacity, "TOOL_UNAVAILABLE": envelope.DependencyFailed, "ESCALATED": envelope.OversightExpired,
		"AGENT_NOT_FOUND": envelope.NoCapableAgent, "SUBPROCESS_ERROR": envelope.AgentError, "WEIRD": envelope.InternalError,
	} {
		m := decodeClutch(t, clutchSaying(t, "task.error", `{"code":"`+code+`","message":"m"}`, ""))
		if m.Failure.Kind != want || m.Failure.Code != code {
			t.Errorf("%s is read as %+v", code, m.Failure)
		}
	}
}

// CLUTCH-53, CLUTCH-81: an agent may say whether the same message may succeed later.
func TestClutchReadsWhetherAnErrorIsRetryable(t *testing.T) {
	for payload, want := range map[string]envelope.Error{
		`{"code":"TIMEOUT","message":"m","retryable":false}`:         {Kind: envelope.Timeout, Message: "m", Final: true},
		`{"code":"TIMEOUT","message":"m","retryable":true}`:          {Kind: envelope.Timeout, Message: "m"},
		`{"code":"BUDGET_EXCEEDED","message":"m","retryable":true}`:  {Kind: envelope.BudgetExceeded, Message: "m", Again: true},
		`{"code":"BUDGET_EXCEEDED","message":"m","retryable":false}`: {Kind: envelope.BudgetExceeded, Message: "m"},
	} {
		if m := decodeClutch(t, clutchSaying(t, "task.error", payload, "")); m.Answer.Error != want {
			t.Errorf("%s is read as %+v; want %+v", payload, m.Answer.Error, want)
		}
	}
}

// CLUTCH-35: both forms of a result are read as the same answer, and said in both.
func TestClutchReadsAResultInBothForms(t *testing.T) {
	flat := decodeClutch(t, clutchSaying(t, "task.result", `{"findings":["a"],"summary":"s"}`, ""))
	wrapped := decodeClutch(t, clutchSaying(t, "task.result", `{"success":true,"output":{"findings":["a"]},"summary":"s"}`, ""))
	if diff := cmp.Diff(flat.Answer, wrapped.Answer); diff != "" {
		t.Error(diff)
	}
	said, _ := clutchCodec(t).Encode(flat)
	if got := value(string(said), "payload"); got != `{"findings":["a"],"output":{"findings":["a"]},"success":true,"summary":"s"}` {
		t.Errorf("said %s", got)
	}
}

// A request of AINL goes to Clutch and comes back with all that binds it, in the words that
// Clutch has: constraints and the tool allow-list.
func TestARequestOfAINLComesBackFromClutch(t *testing.T) {
	limited := ainlLine
	for name, value := range limits {
		limited = set(t, limited, name, value)
	}
	limited = set(t, limited, "budget_limit", `{"tokens":5,"usd_cents":105}`)
	limited = set(t, limited, "input", `{"payload":{"q":"x","n":1.50},"refs":[{"kind":"log","uri":"file://b"},{"kind":"c","uri":"https://c"}]}`)
	limited = set(t, limited, "description", `"find \"it\""`)
	m, findings := ainlCodec(t).Decode([]byte(limited), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	line, _ := clutchCodec(t).Encode(m)
	if err := strict.Clutch(line); err != nil || value(string(line), "payload.constraints.max_cost") != "1.05" || value(string(line), "payload.constraints.max_tokens") != "5" {
		t.Fatalf("%s: %v", line, err)
	}
	back := decodeClutch(t, string(line))
	if back.Task != "t1" || back.From != "ken" || back.To[0] != "radar" || back.Type != "search" || back.Text != `find "it"` {
		t.Fatalf("it is read as %+v", back)
	}
	back.Request.Clutch = nil
	sameLimits(t, back.Request, m.Request)
	if got := back.Request; got.Role != "planner" || string(got.Metadata["k"]) != "1" || value(string(got.Payload), "q") != `"x"` || value(string(got.Payload), "n") != "1.50" {
		t.Errorf("it asks for %+v", got)
	}
}

// An answer goes from AINL to Clutch and back, and so does one of Clutch to AINL.
func TestAnAnswerGoesFromAINLToClutchAndBack(t *testing.T) {
	m, findings := ainlCodec(t).Receive([]byte(fullAnswer), envelope.Task{ID: "m001", Agent: "radar", Requester: "oscar"})
	if findings.Refused() {
		t.Fatal(findings)
	}
	line, _ := clutchCodec(t).Encode(m)
	if err := strict.Clutch(line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	back := decodeClutch(t, string(line))
	want := m.Answer
	want.TaskID, want.AgentID = "", ""
	got := back.Answer
	if strings.Contains(string(got.Extra), "mbx.clutch") {
		got.Extra = nil // the artifacts, once more
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", line, diff)
	}
}

// CLUTCH-74: the types before v0 are read as those of v0, with a warning.
func TestClutchReadsLegacyTypesWithAWarning(t *testing.T) {
	for _, c := range []struct {
		word, payload string
		act           envelope.Act
		kind          string
	}{
		{"PLAN", `{"title":"x"}`, envelope.Requests, "planning"},
		{"PROPOSAL", `{"message":"x"}`, envelope.Reports, ""},
		{"EXEC_REPORT", `{"summary":"x"}`, envelope.Completes, ""},
		{"REVIEW", `{"decision":"approved","comments":"x"}`, envelope.Completes, "review.feedback.v1"},
		{"BLOCKER", `{"message":"x"}`, envelope.Fails, ""},
	} {
		m, findings := clutchCodec(t).Decode([]byte(clutchSaying(t, c.word, c.payload, "")), envelope.Strict)
		if m.Act != c.act || m.Text != "x" || m.Type != c.kind && c.kind != "" || len(findings) != 1 || !findings[0].Warning() || findings[0].Field != "type" {
			t.Errorf("%s is %s %q of type %q: %v", c.word, m.Act, m.Text, m.Type, findings)
		}
		if said, _ := clutchCodec(t).Encode(m); strict.Clutch(said) != nil {
			t.Errorf("%s is said again as %s: %v", c.word, said, strict.Clutch(said))
		}
	}
}

// CLUTCH-82: a task.result is a success; one that says that it is none is read as a failure,
// and never written.
func TestClutchNeverSaysAResultThatIsNoSuccess(t *testing.T) {
	m := decodeClutch(t, clutchSaying(t, "task.result", `{"success":false,"output":{"tried":2},"summary":"not found"}`, ""))
	said, _ := clutchCodec(t).Encode(m)
	if value(string(said), "type") != `"task.error"` || value(string(said), "payload.code") != `"INTERNAL"` || value(string(said), "payload.details.kind") != `"agent_error"` ||
		value(string(said), "payload.message") != `"not found"` || strict.Clutch(said) != nil {
		t.Errorf("said %s: %v", said, strict.Clutch(said))
	}
}

// CLUTCH-75: generated names begin with msg_, and participants with agent: or group:.
func TestClutchGivesNamesThePrefixesOfTheProtocol(t *testing.T) {
	m := envelope.Message{Act: envelope.Informs, Task: "t1", From: "ken", To: []string{"agent:odd", "*"}, Text: "hello"}
	said, _ := clutchCodec(t).Encode(m)
	line := string(said)
	if !strings.HasPrefix(value(line, "id"), `"msg_`) || value(line, "from.agent_id") != `"agent:ken"` ||
		value(line, "to") != `[{"agent_id":"agent:agent:odd"},{"agent_id":"group:all"}]` || value(line, "run_id") != `"t1"` || strict.Clutch(said) != nil {
		t.Errorf("said %s: %v", line, strict.Clutch(said))
	}
	if again := decodeClutch(t, line); again.To[0] != "agent:odd" {
		t.Errorf("%s is read as for %q", line, again.To)
	}
}

// CLUTCH-03, CLUTCH-07, CLUTCH-22: an encoded message has the narrowest form.
func TestClutchEncodesOnlyWhatEveryReaderAccepts(t *testing.T) {
	raw := set(t, set(t, set(t, clutchLine, "ts", `"2026-02-01T15:20:11.123456+02:00"`), "more", "1"), "parent_task_id", "")
	m := decodeClutch(t, set(t, raw, "trace.more", "2"))
	said, lost := clutchCodec(t).Encode(m)
	if value(string(said), "ts") != `"2026-02-01T13:20:11.123Z"` || value(string(said), "parent_task_id") != "null" || strings.Contains(string(said), "more") ||
		!cmp.Equal(lost, []string{"unknown fields"}) || strict.Clutch(said) != nil {
		t.Errorf("said %s, lost %v: %v", said, lost, strict.Clutch(said))
	}
	if value(string(m.Extra), "more") != "1" || value(string(m.Extra), "trace.more") != "2" {
		t.Errorf("kept %s", m.Extra)
	}
}

// CLUTCH-70: every dialect is one codec, in and out; each says what Clutch says, and Clutch what
// each says, and its act survives where the dialect has a word for it.
func TestEachActSurvivesOnTheWayToClutchAndBack(t *testing.T) {
	for _, d := range []envelope.Dialect{envelope.AINL, envelope.CLowl, envelope.CAP} {
		for _, m := range everything(t, d) {
			said, _ := clutchCodec(t).Encode(m)
			if err := strict.Clutch(said); err != nil {
				t.Errorf("%s\nis said in Clutch as %s: %v", m.Raw, said, err)
				continue
			}
			again := decodeClutch(t, string(said))
			asks := m.Act == envelope.Delegates && again.Act == envelope.Requests // without a task above
			if again.Act != m.Act && !asks || again.From != m.From && m.From != "" || again.Failure.Kind != m.Failure.Kind {
				t.Errorf("%s: %s\nbecame %s: %s", m.Act, m.Raw, again.Act, said)
			}
		}
	}
}

// The top of a wrapped answer may have a result beside an output that is a text.
func TestAClutchAnswerWithOutputAndResultReadsTheSameEachTime(t *testing.T) {
	for range 100 {
		m := decodeClutch(t, clutchSaying(t, "task.result", `{"success":true,"output":"a","result":"b"}`, ""))
		if got := string(m.Answer.Output.Extra); got != `{"output":"a","result":"b"}` {
			t.Fatalf("the output is %s; want both", got)
		}
	}
}

func TestTheUsageOfAnAgentDoesNotOverflow(t *testing.T) {
	for _, said := range []string{
		`{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}`,
		`{"tokens":1,"cost_usd":92233720368547758.071}`,
	} {
		if cost := dialect.Usage([]byte(said)); cost == nil || cost.Tokens < 1 || cost.USDCents < 0 {
			t.Errorf("the usage %s is read as %+v", said, cost)
		}
	}
}
