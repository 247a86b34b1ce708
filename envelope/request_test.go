package envelope_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

// fields are the members of the shortest valid request.
var fields = [][2]string{
	{"schema_version", `"1.0"`},
	{"task_id", `"t1"`},
	{"requester_id", `"planner"`},
	{"target_agent", `"monitor"`},
	{"target_role", `"executor"`},
	{"task_type", `"execute_monitor"`},
	{"description", `"look"`},
	{"input", `{"payload":{}}`},
}

// request returns a valid request in which one member has another value, or
// none if the value is "".
func request(name, value string) string {
	var members []string
	replaced := false
	for _, f := range fields {
		if f[0] == name {
			f[1], replaced = value, true
		}
		if f[1] != "" {
			members = append(members, fmt.Sprintf("%q:%s", f[0], f[1]))
		}
	}
	if !replaced && name != "" {
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func decode(t *testing.T, raw string) (envelope.Task, envelope.Findings) {
	t.Helper()
	return envelope.DecodeTask([]byte(raw), envelope.Strict)
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheExampleOfTheContractIsReadInFull(t *testing.T) {
	raw := fixture(t, "request-task-2026-03-09-0001.json")
	got, findings := envelope.DecodeTask(raw, envelope.Strict)
	if len(findings) > 0 {
		t.Errorf("findings = %v; want none", findings)
	}
	tokens, cents := int64(3000), int64(300)
	want := envelope.Task{
		Raw: raw, Hash: got.Hash,
		ID: "task-2026-03-09-0001", Requester: "planner.agent", Agent: "openclaw.monitor", Role: "executor",
		Type: "execute_monitor", Description: "Run TikTok SLA monitor and report whether KPIs are within bounds.",
		Refs:    []envelope.Ref{{Kind: "ainl_program", URI: "file://examples/autonomous_ops/tiktok_sla_monitor.lang"}},
		Input:   got.Input,
		Payload: got.Payload,
		Contract: &envelope.OutputContract{
			Format: "json", SchemaRef: "schema://ainl/agent-output/v1", MustInclude: []string{"status", "summary", "actions"},
		},
		Sensitivity:  envelope.Internal,
		Deadline:     time.Date(2026, 3, 9, 23, 0, 0, 0, time.UTC),
		Budget:       envelope.Budget{Tokens: &tokens, USDCents: &cents},
		AllowedTools: []string{"http", "queue", "svc", "extras", "tiktok"},
		Approval:     envelope.ApprovalPre, HumanApprover: "sre-oncall@example.com",
		Callback:    envelope.Callback{Queue: "agent_results", FileAppend: "agents/openclaw.monitor/results.jsonl"},
		Environment: "staging",
		ChangeWindows: []envelope.Window{{
			Start: time.Date(2026, 3, 10, 1, 0, 0, 0, time.UTC), End: time.Date(2026, 3, 10, 2, 0, 0, 0, time.UTC),
		}},
		Metadata: got.Metadata,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task differs (-want +got):\n%s", diff)
	}
	if !bytes.Contains(raw, got.Input) || !bytes.HasPrefix(got.Input, []byte("{")) || !bytes.Contains(got.Input, []byte("sla_hours")) {
		t.Errorf("input = %s; want it as it stands in the request", got.Input)
	}
	if got, want := string(got.Metadata["ainl.program_id"]), `"tiktok_sla_monitor.v1"`; got != want {
		t.Errorf("metadata ainl.program_id = %s; want %s", got, want)
	}
	if len(got.Hash) != 64 {
		t.Errorf("hash = %q; want 64 hexadecimal digits", got.Hash)
	}
}

func TestTheRequestsOfUpstreamAreTaken(t *testing.T) {
	for line := range bytes.Lines(fixture(t, "upstream-requests.jsonl")) {
		if task, findings := envelope.DecodeTask(line, envelope.Strict); len(findings) > 0 || task.ID == "" {
			t.Errorf("%s: findings = %v; want none", task.ID, findings)
		}
	}
}

func TestTheTemplateOfTheContractIsRefusedByField(t *testing.T) {
	task, findings := envelope.DecodeTask(fixture(t, "request-template-must-be-refused.json"), envelope.Strict)
	if !findings.Refused() || task.ID != "string" || findings[0].Field != "deadline" {
		t.Errorf("DecodeTask = id %q, %v; want id \"string\" refused for its deadline", task.ID, findings)
	}
}

func TestSeveralFindingsComeAtOnceAndInOrder(t *testing.T) {
	raw := `{"input":{"refs":[{"kind":1}]},"task_id":"a/b","approval_required":"x","schema_version":"1.0"}`
	want := []string{
		"task_id", "requester_id", "target_agent", "target_role", "task_type", "description",
		"input.payload", "input.refs[0].kind", "input.refs[0].uri", "approval_required",
	}
	for range 3 {
		_, findings := decode(t, raw)
		var got []string
		for _, f := range findings {
			got = append(got, f.Field)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("fields differ (-want +got):\n%s", diff)
		}
	}
}

func TestARefusedTaskKeepsWhatItsAnswerNeeds(t *testing.T) {
	for _, c := range []struct {
		raw   string
		id    envelope.ID
		agent string
	}{
		{request("input", "7"), "t1", "monitor"},
		{request("task_id", `"../x"`), "", "monitor"},
		{request("metadata", `{"a":NaN}`), "t1", "monitor"},
		{request("metadata", `{"a":1,"a":2}`), "t1", "monitor"},
		{request("", "") + "x", "t1", "monitor"},
		{request("task_id", `"t1","task_id":"t2"`), "", "monitor"},
		{request("target_agent", `"a\u001b"`), "t1", ""},
		{request("target_agent", `"a\u001b","x":NaN`), "t1", ""},
	} {
		got, findings := decode(t, c.raw)
		if !findings.Refused() || got.ID != c.id || got.Agent != c.agent || string(got.Raw) != c.raw || len(got.Hash) != 64 {
			t.Errorf("%s:\n got id %q agent %q hash %q, %v\nwant id %q agent %q, refused", c.raw, got.ID, got.Agent, got.Hash, findings, c.id, c.agent)
		}
	}
}

func TestACallbackThatEscapesIsNotKept(t *testing.T) {
	got, _ := decode(t, request("callback", `{"queue":"q","file_append":"../x"}`))
	if want := (envelope.Callback{Queue: "q"}); got.Callback != want {
		t.Errorf("callback = %+v; want %+v", got.Callback, want)
	}
}

func TestValuesAreReadByTheirMeaning(t *testing.T) {
	got, findings := decode(t, request("task_id", "00")) // not JSON: only whole numbers without leading zeros are
	if findings.Kind() != envelope.InvalidJSON {
		t.Errorf("task_id 00: %v; want %s", findings, envelope.InvalidJSON)
	}
	got, _ = decode(t, request("task_id", "123456789012345678901234567890"))
	if want := envelope.ID("123456789012345678901234567890"); got.ID != want {
		t.Errorf("id = %q; want %q, by its digits", got.ID, want)
	}
	got, _ = decode(t, request("input", `{"payload": [1.0, 1e999,-0, 9007199254740993,"\ud800" ]}`))
	if want := `[1.0, 1e999,-0, 9007199254740993,"\ud800" ]`; string(got.Payload) != want {
		t.Errorf("row 5: payload = %s; want %s byte for byte", got.Payload, want)
	}
	got, _ = decode(t, request("deadline", `"2016-12-31T23:59:60Z"`))
	if want := time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC); !got.Deadline.Equal(want) {
		t.Errorf("row 25: deadline = %v; want %v, after the leap second", got.Deadline, want)
	}
	got, _ = decode(t, request("allowed_tools", `[]`))
	if got.AllowedTools == nil || len(got.AllowedTools) != 0 {
		t.Errorf("allowed_tools [] = %#v; want an empty list, not nil", got.AllowedTools)
	}
	got, _ = decode(t, request("metadata", `{"mbx.run_id":"x","a":1}`))
	if _, forged := got.Metadata["mbx.run_id"]; forged || len(got.Metadata) != 1 {
		t.Errorf("metadata = %v; want the sender's mbx.* left out", got.Metadata)
	}
	if got, _ := decode(t, request("", "")); got.Sensitivity != envelope.Internal || got.AllowedTools != nil || got.Approval != envelope.ApprovalNone {
		t.Errorf("a short request = %+v; want internal, no tools given, no approval", got)
	}
}

func TestChangeWindowsAreReadInEveryForm(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 3, 10, hour, 0, 0, 0, time.UTC) }
	for value, want := range map[string][]envelope.Window{
		`"2026-03-10T01:00:00Z/2026-03-10T02:00:00Z"`:                               {{Start: at(1), End: at(2)}},
		`"2026-03-10T01:00:00Z/PT1H"`:                                               {{Start: at(1), End: at(2)}},
		`"2026-03-10T03:00:00+02:00/2026-03-10T02:00:00Z"`:                          {{Start: at(1), End: at(2)}},
		`"2026-03-10T01:00:00Z/P1DT1H30M30S"`:                                       {{Start: at(1), End: at(26).Add(30*time.Minute + 30*time.Second)}},
		`["2026-03-10T01:00:00Z/PT1H","2026-03-10T05:00:00Z/2026-03-10T06:00:00Z"]`: {{Start: at(1), End: at(2)}, {Start: at(5), End: at(6)}},
		`null`: nil,
	} {
		got, findings := decode(t, request("policy_context", `{"change_window":`+value+`}`))
		equal := slices.EqualFunc(got.ChangeWindows, want, func(a, b envelope.Window) bool {
			return a.Start.Equal(b.Start) && a.End.Equal(b.End)
		})
		if len(findings) > 0 || !equal {
			t.Errorf("%s = %v, %v; want %v", value, got.ChangeWindows, findings, want)
		}
	}
}

func TestTheOlderContractIsReadOnlyWhenAskedFor(t *testing.T) {
	raw := `{"task_id":"t1","requester_id":"p","target_agent":"a","task_type":"x","description":"",
		"input":{"payload":{}},"approval_required":false,"callback":null}`
	if _, findings := envelope.DecodeTask([]byte(raw), envelope.Strict); !findings.Refused() {
		t.Errorf("strict: %v; want it refused", findings)
	}
	got, findings := envelope.DecodeTask([]byte(raw), envelope.Legacy)
	if want := "warning schema_version: is missing, read as \"1.0\"; warning target_role: is missing"; short(findings) != want {
		t.Errorf("legacy: %s; want %s", short(findings), want)
	}
	if got.ID != "t1" || got.Role != "" {
		t.Errorf("legacy: id %q, role %q; want t1 and no role", got.ID, got.Role)
	}
	_, findings = envelope.DecodeTask([]byte(request("target_role", "")), envelope.Legacy)
	if !findings.Refused() {
		t.Errorf("legacy with a schema_version: %v; want the missing role refused", findings)
	}
}

func TestAnObjectThatIsNoRequestIsRefusedByName(t *testing.T) {
	for raw, want := range map[string]string{
		string(fixture(t, "result-task-2026-03-09-0001.json")):                        "is an AgentTaskResult, not an AgentTaskRequest",
		string(fixture(t, "manifest-openclaw.monitor.json")):                          "is an AgentManifest, not an AgentTaskRequest",
		string(fixture(t, "cap-agent-qa-1.json")):                                     "is a CAP agent definition, not an AgentTaskRequest",
		`{"type":"delegation_notice","task_id":"T1","sender_id":"a"}`:                 "is a CAP message, not an AgentTaskRequest",
		`{"clowl":"0.2","mid":"m1","p":"REQ"}`:                                        "is a CLowl message, not an AgentTaskRequest",
		`{"v":"clutch/0.1","id":"x","task_id":"T1"}`:                                  "is a Clutch message, not an AgentTaskRequest",
		`{"v":"clutch/0.1","clowl":"0.2"}`:                                            "is ambiguous: a CLowl message and a Clutch message at once",
		request("clowl", `"0.2"`):                                                     "is ambiguous: an AgentTaskRequest and a CLowl message at once",
		`{"task_id":"t1","agent_id":"a","status":"ok","target_agent":"a","input":{}}`: "is ambiguous: an AgentTaskRequest and an AgentTaskResult at once",
	} {
		got, findings := decode(t, raw)
		if short(findings) != want {
			t.Errorf("row 50: %.60s: %s; want %s", raw, short(findings), want)
		}
		if asks := strings.Contains(raw, "target_agent"); asks != (got.ID != "") {
			t.Errorf("row 50: %.60s: id %q; want one only if a caller asks", raw, got.ID)
		}
	}
}

func TestNestingIsLimitedBeforeAnythingIsBuilt(t *testing.T) {
	nest := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	if _, findings := decode(t, request("x", nest(127))); findings.Refused() {
		t.Errorf("128 deep: %v; want it taken", findings)
	}
	for _, depth := range []int{128, 100_000} {
		got, findings := decode(t, request("x", nest(depth)))
		if findings.Kind() != envelope.InvalidEnvelope || got.ID != "t1" {
			t.Errorf("row 11: %d deep: id %q, %v; want t1, %s", depth+1, got.ID, findings, envelope.InvalidEnvelope)
		}
	}
}
