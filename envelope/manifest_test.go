package envelope_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

func TestTheManifestOfTheContractIsReadInFull(t *testing.T) {
	got, findings := envelope.DecodeManifest(fixture(t, "manifest-openclaw.monitor.json"))
	if len(findings) > 0 {
		t.Errorf("findings = %v; want none", findings)
	}
	want := envelope.Manifest{
		AgentID: "openclaw.monitor", Name: "OpenClaw Infrastructure Monitor", Version: "1.0.0",
		Description:    "Runs AINL-based infrastructure and SLA monitors and emits alerts.",
		RoleTypes:      []string{"executor", "advisor"},
		AvailableTools: []string{"http", "queue", "svc", "extras", "tiktok", "fs.read-only"},
		ExecutionMode:  envelope.Hybrid, TrustDomain: "internal",
		ApprovalByType: map[string]bool{"prod_deploy": true, "high_risk_change": true},
		BudgetClass:    "medium", Locality: envelope.Local, MaxContextSize: 32768,
		Contact:    envelope.Contact{Queue: "openclaw_agent_tasks", InboxFile: "agents/openclaw.monitor/inbox.jsonl"},
		PolicyRefs: []string{"policy://internal/agent-safety/v1"},
		Origin: envelope.Origin{
			Owner: "Steven Hooley / OpenClaw", CreatedAt: "2026-03-09T00:00:00Z", SourceRepo: "https://github.com/sbhooley/ainativelang",
		},
		SHA256: "2f0a01683f9ee5b2b8db450ec16f01f78e296de4e6e3b3aab8032c009be4f33e",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest differs (-want +got):\n%s", diff)
	}
	if _, findings := envelope.DecodeManifest(fixture(t, "manifest-template.json")); len(findings) > 0 {
		t.Errorf("template: %v; want no findings", findings)
	}
}

func TestStandingApprovalGoesByTypeFirst(t *testing.T) {
	m, findings := envelope.DecodeManifest([]byte(`{"schema_version":"1.0","agent_id":"a","role_types":["executor"],
		"requires_human_approval":{"default":true,"for_task_types":{"look":false,"deploy":true}}}`))
	if len(findings) > 0 {
		t.Fatalf("findings = %v; want none", findings)
	}
	for taskType, want := range map[string]bool{"look": false, "deploy": true, "other": true, "Look": true} {
		if got := m.RequiresApproval(taskType); got != want {
			t.Errorf("AINL-17: RequiresApproval(%q) = %v; want %v", taskType, got, want)
		}
	}
	if new(envelope.Manifest).RequiresApproval("any") {
		t.Error("AINL-17: an empty manifest requires approval; want none")
	}
}

func TestAManifestThatIsWrongIsRefusedByField(t *testing.T) {
	const rest = `"schema_version":"1.0","agent_id":"a","role_types":["executor"]`
	for raw, want := range map[string]string{
		`{}`: "schema_version: required; agent_id: required; warning role_types: is empty: the agent takes every role",
		`{"schema_version":"2.0","agent_id":"a","role_types":["x"]}`:          `unsupported_version schema_version: is "2.0", only 1.x is supported`,
		`{` + rest + `,"agent_id":"b"}`:                                       "agent_id: appears more than once",
		`{` + rest + `,"execution_mode":"wild"}`:                              `execution_mode: must be one of ["advisory" "executing" "hybrid"]`,
		`{` + rest + `,"locality":"moon"}`:                                    `locality: must be one of ["local" "remote"]`,
		`{` + rest + `,"available_tools":"http"}`:                             "available_tools: must be a list",
		`{` + rest + `,"max_context_size":-1}`:                                "max_context_size: must be a whole number, 0 or more",
		`{` + rest + `,"requires_human_approval":true}`:                       "requires_human_approval: must be an object",
		`{` + rest + `,"requires_human_approval":{"default":"yes"}}`:          "requires_human_approval.default: must be true or false",
		`{` + rest + `,"requires_human_approval":{"for_task_types":{"x":1}}}`: "requires_human_approval.for_task_types.x: must be true or false",
		`{` + rest + `,"contact":{"inbox_file":"../x"}}`:                      "security_violation contact.inbox_file: must stay below the root",
		`{` + rest + `,"policy_refs":[1]}`:                                    "policy_refs[0]: must be a string",
		`{` + rest + `,"avaliable_tools":[]}`:                                 "warning avaliable_tools: is not a field we know",
		`[]`:                                                                  "must be a JSON object",
		`{"a":NaN}`:                                                           "invalid_json a: is NaN, which JSON does not have (byte 5)",
	} {
		if _, findings := envelope.DecodeManifest([]byte(raw)); short(findings) != want {
			t.Errorf("%s:\n got %s\nwant %s", raw, short(findings), want)
		}
	}
}

func TestUnknownFieldsOfAManifestAreKept(t *testing.T) {
	m, _ := envelope.DecodeManifest([]byte(`{"schema_version":"1.0","agent_id":"a","command":["rm"],"x":1.0}`))
	if want := jsontext.Value(`{"command":["rm"],"x":1.0}`); string(m.Extra) != string(want) {
		t.Errorf("extra = %s; want %s", m.Extra, want)
	}
}
