package agent_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// AINL-42: a schema that is nowhere is not held to, and nobody says it was.
func TestASchemaThatNobodyHasIsNotClaimed(t *testing.T) {
	h := held{control: envelope.ControlOutputContract, more: `, "required_output_contract": {"schema_ref": "schema://acme/none", "must_include_fields": ["x"]}`}
	got := h.finish(t, envelope.Enforce, `{"summary": "s", "x": 1}`, false)
	if got.Status != envelope.OK || got.Output.Enforcement[h.control] != envelope.LevelAdvisory {
		t.Errorf("status %q, enforcement %v; want ok, and the contract advisory", got.Status, got.Output.Enforcement)
	}
	if got = h.finish(t, envelope.Enforce, `{"summary": "s"}`, false); got.Error.Kind != envelope.ContractViolation {
		t.Errorf("error = %+v; want the fields held to all the same", got.Error)
	}
}

// A schema describes what the agent said, in each format that it can say it in.
func TestASchemaIsAboutTheAgentsOwnWords(t *testing.T) {
	contract := `, "required_output_contract": {"schema_ref": "schema://acme/report/v2"}`
	for name, c := range map[string]struct {
		format agent.Format
		answer string
		ok     bool
	}{
		"an output in its envelope": {agent.Envelope, `{"status": "ok", "output": {"verdict": "yes"}, "artifact_refs": []}`, true},
		"the output alone":          {agent.Envelope, `{"verdict": "yes", "summary": ""}`, false}, // which is no answer: it says nothing
		"with a summary":            {agent.Envelope, `{"verdict": "yes", "summary": "s"}`, true},
		"any object":                {agent.JSON, `{"verdict": "no"}`, true},
		"an output within it":       {agent.JSON, `{"output": {"verdict": "no"}}`, false},
		"a member too many":         {agent.JSON, `{"verdict": "no", "actions": []}`, false},
		"half a pair":               {agent.JSON, `{"verdict": "\ud800"}`, false},
		"text":                      {agent.Text, `yes`, false},
	} {
		b := playing(t, "hang")
		b.Output = c.format
		j := jobFor(t, request(contract))
		ended(t, j, c.answer, task.Exit{PID: 1 << 30})
		agents, err := agent.New([]agent.Binding{b}, agent.Options{Schemas: schemas(t)})
		if err != nil {
			t.Fatal(err)
		}
		if got := agents.Recover(t.Context(), j).Result; (got.Status == envelope.OK) != c.ok {
			t.Errorf("%s: status %q, error %+v; want it right: %v", name, got.Status, got.Error, c.ok)
		}
	}
}
