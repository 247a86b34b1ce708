package envelope_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
)

func TestAMisspeltControlIsANearMiss(t *testing.T) {
	for _, c := range []struct{ name, value, field, want string }{
		{"Approval_Required", `"pre"`, "Approval_Required", `unknown field; did you mean "approval_required"?`},
		{"aproval_required", `"pre"`, "aproval_required", `unknown field; did you mean "approval_required"?`},
		{"approvalRequired", `"pre"`, "approvalRequired", `unknown field; did you mean "approval_required"?`},
		{"approval-required", `"pre"`, "approval-required", `unknown field; did you mean "approval_required"?`},
		{"APROVAL-REQIRED", `"pre"`, "APROVAL-REQIRED", `unknown field; did you mean "approval_required"?`},
		{`\u0041pproval_required`, `"pre"`, "Approval_required", `unknown field; did you mean "approval_required"?`},
		{"Deadline", `"2026-03-09T23:00:00Z"`, "Deadline", `unknown field; did you mean "deadline"?`},
		{"deadlnie", `null`, "deadlnie", `unknown field; did you mean "deadline"?`}, // two letters changed places
		{"deadlines", `[]`, "deadlines", `unknown field; did you mean "deadline"?`},
		{"Budget_Limit", `{}`, "Budget_Limit", `unknown field; did you mean "budget_limit"?`},
		{"alowed_tool", `[]`, "alowed_tool", `unknown field; did you mean "allowed_tools"?`},
		{"sensitvty", `"internal"`, "sensitvty", `unknown field; did you mean "sensitivity"?`},
		{"human_aprover", `"sre"`, "human_aprover", `unknown field; did you mean "human_approver"?`},
		{"policy_kontext", `{}`, "policy_kontext", `unknown field; did you mean "policy_context"?`},
		{"required_output_contracts", `{}`, "required_output_contracts", `unknown field; did you mean "required_output_contract"?`},
		{"budget_limit", `{"token":5}`, "budget_limit.token", `unknown field; did you mean "tokens"?`},
		{"budget_limit", `{"usdCents":5}`, "budget_limit.usdCents", `unknown field; did you mean "usd_cents"?`},
		{"policy_context", `{"changewindow":"x"}`, "policy_context.changewindow", `unknown field; did you mean "change_window"?`},
		{"required_output_contract", `{"must_include_field":[]}`, "required_output_contract.must_include_field", `unknown field; did you mean "must_include_fields"?`},
		{"approval_required", `null`, "approval_required", "must not be null; leave it out for no limit"},
		{"allowed_tools", `null`, "allowed_tools", "must not be null; leave it out for no limit"},
		{"budget_limit", `null`, "budget_limit", "must not be null; leave it out for no limit"},
		{"sensitivity", `null`, "sensitivity", "must not be null; leave it out for no limit"},
		{"policy_context", `{"change_window":null}`, "policy_context.change_window", "must not be null; leave it out for no limit"},
	} {
		task, findings := decode(t, request(c.name, c.value))
		if c.name[0] == '\\' {
			task, findings = decode(t, strings.Replace(request("x", c.value), `"x"`, `"`+c.name+`"`, 1))
		}
		want := envelope.Finding{Kind: envelope.InvalidEnvelope, Field: c.field, Message: c.want}
		if findings.Refused() || len(task.NearMisses) != 1 || task.NearMisses[0] != want {
			t.Errorf("AINL-54: %s: %s gives %v, near misses %v; want it %v", c.name, c.value, findings, task.NearMisses, want)
		}
	}
}

func TestOtherUnknownFieldsAreNoNearMisses(t *testing.T) {
	for _, c := range [][2]string{
		{"priority", `1`}, {"dedline_at", `1`}, {"TASK_ID", `"t2"`}, {"calback", `{}`}, {"context", `{}`}, {"policy", `{}`}, {"tools", `[]`},
		{"approval", `"pre"`}, {"budget", `1`}, {"allowed_agents", `[]`}, {"tool_allowlist", `[]`}, {"security", `{}`}, {"deadln", `1`},
		{"budget_limit", `{"tokens":null,"usd_cents":5}`}, {"required_output_contract", `{"schema_ref":null}`}, {"sensitive", `true`}, {"Metadata", `{}`}, {"_", `1`}, {"deadline", `null`}, {"human_approver", `null`}, {"callback", `null`},
		{"budget_limit", `{"toke":1}`}, {"budget_limit", `{"minutes":5}`}, {"policy_context", `{"env":"x","Deadline":"x"}`},
		{"input", `{"payload":{"Deadline":1,"aproval_required":2},"Allowed_Tools":null}`},
		{"metadata", `{"Deadline":1,"aproval_required":2,"budget_limit":null}`}, {"other", `{"Deadline":1,"budget_limit":null}`},
	} {
		if task, findings := decode(t, request(c[0], c[1])); findings.Refused() || len(task.NearMisses) > 0 {
			t.Errorf("AINL-54: %s: %s gives %v, near misses %v; want none", c[0], c[1], findings, task.NearMisses)
		}
	}
}

func TestAMisspeltControlOfAManifestIsANearMiss(t *testing.T) {
	const manifest = `{"schema_version":"1.0","agent_id":"a","role_types":["x"],`
	for member, want := range map[string]string{
		`"Available_Tools":[]`:                         `Available_Tools: unknown field; did you mean "available_tools"?`,
		`"requires_human_aproval":{"default":true}`:    `requires_human_aproval: unknown field; did you mean "requires_human_approval"?`,
		`"requires_human_approval":{"defualt":true}`:   `requires_human_approval.defualt: unknown field; did you mean "default"?`,
		`"available_tools":null`:                       "available_tools: must not be null; leave it out for no limit",
		`"provenance":{"Locality":"x"},"localise":"x"`: "",
		`"requires_human_approval":{"for_task_types":{"defualt":true,"Available_Tools":false}}`: "",
	} {
		m, findings := envelope.DecodeManifest([]byte(manifest + member + "}"))
		if findings.Refused() || m.NearMisses.String() != want {
			t.Errorf("AINL-54: %s gives %v, near misses %q; want %q", member, findings, m.NearMisses, want)
		}
	}
}

// A hostile line has many names, and its sender needs only the first.
func TestNearMissesAreLimited(t *testing.T) {
	var members strings.Builder
	for i := range 1000 {
		members.WriteString(`,"deadlin` + string(rune(0x4e00+i)) + `":1`)
	}
	line := strings.TrimSuffix(request("", ""), "}") + members.String() + "}"
	if task, _ := decode(t, line); len(task.NearMisses) != 20 {
		t.Errorf("AINL-54: %d near misses; want 20", len(task.NearMisses))
	}
}

// A name that the protocols define, or that their reference samples have, is never a near miss,
// in any object.
func TestNoNameOfAShippedSampleIsANearMiss(t *testing.T) {
	names := map[string]bool{}
	for _, dir := range []string{"testdata", "dialect/testdata", "../examples"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(filepath.Ext(path), ".json") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil {
				collectNames(t, path, text, names)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 100 {
		t.Fatalf("%d names are in the samples; want all of the protocols", len(names))
	}
	for name := range names {
		member := map[string]any{name: "x"}
		for at, object := range map[envelope.Section]any{
			envelope.InRequest:  map[string]any{"budget_limit": member, "policy_context": member, "required_output_contract": member},
			envelope.InManifest: map[string]any{"requires_human_approval": member},
			envelope.InClutch:   map[string]any{"security": map[string]any{"policy": member}},
		} {
			for _, tried := range []any{member, object} {
				text, err := json.Marshal(tried)
				if err != nil {
					t.Fatal(err)
				}
				if found := envelope.NearMisses(text, "", at); found != nil {
					t.Errorf("AINL-54: %q of a sample is a near miss: %v", name, found)
				}
			}
		}
	}
}

// collectNames adds the names of all members of the objects in a text: one document, or one on
// each line.
func collectNames(t *testing.T, path string, text []byte, names map[string]bool) {
	t.Helper()
	documents := [][]byte{text}
	if strings.HasSuffix(path, ".jsonl") {
		documents = bytes.Split(text, []byte("\n"))
	}
	for _, document := range documents {
		var value any
		if len(bytes.TrimSpace(document)) == 0 || json.Unmarshal(document, &value) != nil {
			continue
		}
		addNames(value, names)
	}
}

func addNames(value any, names map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, inside := range value {
			names[name] = true
			addNames(inside, names)
		}
	case []any:
		for _, item := range value {
			addNames(item, names)
		}
	}
}
