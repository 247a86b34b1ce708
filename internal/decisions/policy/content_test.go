package policy_test

import (
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
)

// CLUTCH-42: the step of a workflow binds a request in Clutch. Another request only mentions it.
func TestAnUnknownStepRefusesARequestInClutchAndWarnsOfAnother(t *testing.T) {
	unknown := func(t envelope.Task) (field, why string) {
		if t.Type == "work" {
			return "meta.step", "the workflow has no such step"
		}
		return "", ""
	}
	clutch := &envelope.ClutchPart{}
	for name, c := range map[string]struct {
		clutch   *envelope.ClutchPart
		taskType string
		kind     envelope.Kind
		finds    string
	}{
		"in Clutch":               {clutch, "work", envelope.InvalidEnvelope, "meta.step: the workflow has no such step"},
		"in AINL":                 {nil, "work", "", "meta.step: the workflow has no such step"},
		"in Clutch, a known step": {clutch, "look", "", ""},
		"in AINL, a known step":   {nil, "look", "", ""},
	} {
		asks := newTask()
		asks.Clutch, asks.Type = c.clutch, c.taskType
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{UnknownStep: unknown}, noon)
		if v.Admit != (c.kind == "") || v.Findings.Kind() != c.kind || v.Findings.String() != c.finds {
			t.Errorf("%s: Decide = %+v; want kind %q, findings %q", name, v, c.kind, c.finds)
		}
	}
}

func TestAnUnknownVersionOfASchemaRefusesARequestInClutch(t *testing.T) {
	unknown := func(schemaRef string) string {
		if schemaRef == "clutch.invoice.v9" {
			return "the schema has no version 9"
		}
		return ""
	}
	for name, c := range map[string]struct {
		clutch *envelope.ClutchPart
		finds  string
	}{
		"an unknown version": {&envelope.ClutchPart{SchemaRef: "clutch.invoice.v9"}, "schema_ref: the schema has no version 9"},
		"a known version":    {&envelope.ClutchPart{SchemaRef: "clutch.invoice.v1"}, ""},
		"no Clutch":          {nil, ""},
	} {
		asks := newTask()
		asks.Clutch = c.clutch
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{UnknownVersion: unknown}, noon)
		if v.Admit != (c.finds == "") || v.Findings.String() != c.finds {
			t.Errorf("%s: Decide = %+v; want findings %q", name, v, c.finds)
		}
	}
}

// CLUTCH-63: a signature that is not verified must not look verified.
func TestASignatureOfARequestIsSaidToBeUnverified(t *testing.T) {
	for name, c := range map[string]struct {
		clutch *envelope.ClutchPart
		warned bool
	}{
		"signed":     {&envelope.ClutchPart{Auth: envelope.Signature{Scheme: "ed25519", Value: "x"}}, true},
		"not signed": {&envelope.ClutchPart{}, false},
	} {
		asks := newTask()
		asks.Clutch = c.clutch
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon)
		if warned := strings.HasPrefix(v.Findings.String(), "security.auth: is unverified"); !v.Admit || warned != c.warned {
			t.Errorf("%s: Decide = %+v; want it admitted, warned %v", name, v, c.warned)
		}
	}
}

// AINL-40: a worker in a sandbox is older than its tasks, so their files are not in it.
func TestATaskWithFilesIsRefusedForAnAgentThatCannotSeeThem(t *testing.T) {
	for _, c := range []struct {
		refs    []envelope.Ref
		noFiles bool
		kind    envelope.Kind
	}{
		{[]envelope.Ref{{Kind: "file", URI: "file://x"}}, true, envelope.UnsupportedTask},
		{[]envelope.Ref{{Kind: "file", URI: "file://x"}}, false, ""},
		{nil, true, ""},
	} {
		asks := newTask()
		asks.Refs = c.refs
		v := policy.Decide(asks, &policy.Subject{NoFiles: c.noFiles}, policy.Rules{}, noon)
		if v.Admit != (c.kind == "") || v.Findings.Kind() != c.kind {
			t.Errorf("Decide(%d files, no files %v) = %+v; want kind %q", len(c.refs), c.noFiles, v, c.kind)
		}
	}
}

// CLUTCH-73: artifacts are copied to the directory of a run.
func TestATaskWithArtifactsIsRefusedForAWorker(t *testing.T) {
	digest := strings.Repeat("a", 64)
	for _, c := range []struct {
		uri  string
		kind envelope.Kind
	}{
		{envelope.ArtifactURI(digest), envelope.UnsupportedTask},
		{"file://x", ""},
	} {
		asks := newTask()
		asks.Refs = []envelope.Ref{{Kind: "file", URI: c.uri}}
		if v := policy.Decide(asks, &policy.Subject{NoDir: true}, policy.Rules{}, noon); v.Findings.Kind() != c.kind {
			t.Errorf("Decide(%s) = %+v; want kind %q", c.uri, v, c.kind)
		}
		if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon); !v.Admit {
			t.Errorf("Decide(%s) = %+v; want it admitted for an agent with run directories", c.uri, v)
		}
	}
}

func TestTheRefusalOfASensitivityNamesTheFieldThatRaisedIt(t *testing.T) {
	for by, want := range map[string]string{"": "sensitivity: is confidential", "input.refs[0]": "input.refs[0]: is confidential"} {
		asks := newTask()
		asks.Sensitivity, asks.SensitiveBy = envelope.Confidential, by
		remote := &policy.Subject{MaxSensitivity: envelope.Restricted, Manifest: &envelope.Manifest{Locality: envelope.Remote}}
		for _, agent := range []*policy.Subject{{MaxSensitivity: envelope.Internal}, remote} {
			if v := policy.Decide(asks, agent, policy.Rules{}, noon); v.Admit || !strings.HasPrefix(v.Findings.String(), want) {
				t.Errorf("Decide = %+v; want it refused: %s", v, want)
			}
		}
	}
}

// AINL-18: an agent without metering is refused, and the person who reads why must find the limit.
func TestTheRefusalOfABudgetSaysWhereTheBudgetIsFrom(t *testing.T) {
	budget := envelope.Budget{Tokens: amount(5)}
	for want, s := range map[string]scene{
		`the task has a budget; output`:                       {task: envelope.Task{Budget: budget}},
		`the task has a budget by its class "low"; output`:    {rules: policy.Rules{Classes: []policy.Class{{Name: "low", Budget: budget}}}},
		`the task has a budget by its card; output: envelope`: {agent: policy.Subject{Card: envelope.CardLimits{Budget: budget}}},
		`the task has a budget of the day; output: envelope`:  {rules: policy.Rules{DayBudgets: []policy.DayBudget{{Agent: "*", Limit: budget}}}},
	} {
		asks := newTask()
		asks.Budget = s.task.Budget
		s.agent.Manifest = &envelope.Manifest{BudgetClass: "low"}
		v := policy.Decide(asks, &s.agent, s.rules, noon)
		if v.Admit || !strings.Contains(v.Findings.String(), want) {
			t.Errorf("Decide = %q; want %q", v.Findings, want)
		}
	}
}

// AINL-58: a window that only warns doesn't end a run.
func TestAChangeWindowThatOnlyWarnsEndsNoRun(t *testing.T) {
	asks := newTask()
	asks.ChangeWindows = []envelope.Window{{Start: noon, End: noon.Add(time.Hour)}}
	rules := policy.Rules{Modes: map[envelope.Control]envelope.Mode{envelope.ControlChangeWindow: envelope.Warn}}
	v := policy.Decide(asks, &policy.Subject{KillAtWindowEnd: true}, rules, noon)
	if !v.Admit || !v.Deadline.IsZero() || len(v.Findings) > 0 {
		t.Errorf("Decide = %+v; want it admitted without a deadline", v)
	}
}
