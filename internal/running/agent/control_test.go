package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/schema"
)

// A held is one control that is judged after a run, broken by an answer.
type held struct {
	id      string // of the requirement
	control envelope.Control
	more    string // members of the request
	answer  string
	agent   agent.Binding
	terms   task.Terms
	kind    envelope.Kind // of the error when it is enforced; "": only review is asked
	reason  string        // for review, begins with this
	level   envelope.Level
	spent   envelope.Level // the level of an answer that does not break it
	fine    string         // such an answer
}

func holds(t *testing.T) []held {
	three := int64(3)
	return []held{{
		id: "AINL-43", control: envelope.ControlOutputContract, kind: envelope.ContractViolation,
		more:   `, "required_output_contract": {"format": "json", "must_include_fields": ["findings"]}`,
		answer: `{"status": "ok", "output": {"summary": "kept"}}`, fine: `{"summary": "kept", "findings": []}`,
		reason: `the answer lacks required fields: ["findings"]`, level: envelope.LevelDaemon,
	}, {
		id: "AINL-42 built in", control: envelope.ControlOutputContract, kind: envelope.ContractViolation,
		more:   `, "required_output_contract": {"schema_ref": "` + schema.AgentOutput + `"}`,
		answer: `{"summary": "kept", "actions": [{"kind": "x", "status": "skipped"}]}`, fine: `{"status": "partial", "output": {"summary": "kept"}}`,
		reason: `the answer is not what ` + schema.AgentOutput + ` describes: actions.0.description: `, level: envelope.LevelDaemon,
	}, {
		id: "AINL-42 from the directory", control: envelope.ControlOutputContract, kind: envelope.ContractViolation,
		more:   `, "required_output_contract": {"schema_ref": "schema://acme/report/v2"}`,
		answer: `{"agent_id": "tester", "output": {"summary": "kept", "verdict": "maybe"}}`, fine: `{"verdict": "yes", "summary": "kept"}`,
		reason: `the answer is not what schema://acme/report/v2 describes: verdict: `, level: envelope.LevelDaemon,
	}, {
		id: "AINL-47 an action", control: envelope.ControlTools, kind: envelope.PolicyViolation, terms: task.Terms{Tools: []string{"http"}},
		answer: `{"summary": "kept", "actions": [{"kind": "k", "description": "d", "status": "executed", "tool": "shell"}]}`, fine: `{"summary": "kept", "tools_used": ["http"]}`,
		reason: `the agent used tools that it was not allowed to: ["shell"]`, level: envelope.LevelObserved,
	}, {
		id: "AINL-47 a list", control: envelope.ControlTools, kind: envelope.PolicyViolation, terms: task.Terms{Tools: []string{}},
		answer: `{"summary": "kept", "tools_used": ["http", "http", "fs"]}`, fine: `{"summary": "kept", "tools_used": []}`,
		reason: `the agent used tools that it was not allowed to: ["http" "fs"]`, level: envelope.LevelObserved,
	}, {
		id: "AINL-15", control: envelope.ControlExecutionMode,
		agent:  agent.Binding{Manifest: &envelope.Manifest{AgentID: "tester", ExecutionMode: envelope.Advisory}},
		answer: `{"summary": "kept", "actions": [{"kind": "k", "description": "d", "status": "executed"}]}`, fine: `{"summary": "kept"}`,
		reason: "advisory agent reported an executed action", level: envelope.LevelObserved,
	}, {
		id: "AINL-46 of the task", control: envelope.ControlBudget, kind: envelope.BudgetExceeded, more: `, "budget_limit": {"tokens": 3}`,
		answer: `{"status": "ok", "output": {"summary": "kept"}, "cost_used": {"tokens": 4, "usd_cents": 0}}`, fine: `{"summary": "kept"}`,
		reason: "the agent used 4 tokens of 3", level: envelope.LevelObserved, spent: envelope.LevelAdvisory,
	}, {
		id: "AINL-46 of the operator", control: envelope.ControlBudget, kind: envelope.BudgetExceeded, terms: task.Terms{Budget: envelope.Budget{USDCents: &three}},
		answer: `{"status": "ok", "output": {"summary": "kept"}, "cost_used": {"tokens": 0, "usd_cents": 4}}`,
		fine:   `{"status": "ok", "output": {"summary": "kept"}, "cost_used": {"tokens": 0, "usd_cents": 3}}`,
		reason: "the agent used 4 US cents of 3", level: envelope.LevelObserved,
	}}
}

// finish has an agent of the case answer so, with its control in a mode: as a
// process that was recovered, or as a worker.
func (h held) finish(t *testing.T, mode envelope.Mode, answer string, asWorker bool) envelope.Result {
	t.Helper()
	b, opts := playing(t, "hang"), agent.Options{Schemas: schemas(t), WorkerDir: t.TempDir(), Modes: map[envelope.Control]envelope.Mode{h.control: mode}}
	j := jobFor(t, request(h.more))
	j.Terms = h.terms
	if h.control == envelope.ControlBudget {
		j.Meter = limited(j.Task.Budget, h.terms.Budget)
	}
	if asWorker {
		b, j.Dir = answering(t, strings.TrimSuffix(strings.TrimPrefix(answer, "{"), "}")), ""
	}
	b.Manifest = h.agent.Manifest
	agents, err := agent.New([]agent.Binding{b}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer agents.Close(0)
	if asWorker {
		return agents.Run(t.Context(), j, nil).Result
	}
	ended(t, j, answer, task.Exit{PID: 1 << 30})
	return agents.Recover(t.Context(), j).Result
}

func schemas(t *testing.T) *schema.Set {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "acme", "report")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	strict := `{"required": ["verdict"], "properties": {"verdict": {"enum": ["yes", "no"]}, "summary": true}, "additionalProperties": false}`
	if err := os.WriteFile(filepath.Join(dir, "v2.json"), []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Load(filepath.Dir(filepath.Dir(dir)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// AINL-46: who has spent too much is not asked again, though it asks for that.
func TestARunThatSpentTooMuchIsNotMadeAgain(t *testing.T) {
	three := int64(3)
	for cost, again := range map[string]bool{`{"tokens": 3, "usd_cents": 0}`: true, `{"tokens": 4, "usd_cents": 0}`: false} {
		agents, err := agent.New([]agent.Binding{playing(t, "hang")}, agent.Options{})
		if err != nil {
			t.Fatal(err)
		}
		j := jobFor(t, request(`, "budget_limit": {"tokens": 3}`))
		j.Meter = limited(j.Task.Budget, envelope.Budget{Tokens: &three})
		ended(t, j, `{"status": "error", "output": {"summary": "later"}, "cost_used": `+cost+`}`, task.Exit{PID: 1 << 30, Code: 75})
		o := agents.Recover(t.Context(), j)
		if exceeded := o.Result.Error.Kind == envelope.BudgetExceeded; o.Retry != again || exceeded == again || o.Result.Output.Summary != "later" {
			t.Errorf("at %s: again %v, result %+v; want again %v, the answer kept, and budget_exceeded only if not", cost, o.Retry, o.Result, again)
		}
	}
}

func TestWhatIsHeldAfterARunIsHeldInEachMode(t *testing.T) {
	for _, h := range holds(t) {
		for _, asWorker := range []bool{false, true} {
			where := map[bool]string{false: " exec ", true: " worker "}[asWorker]
			t.Run(h.id+where+string(h.control)+" enforce", func(t *testing.T) { h.enforced(t, asWorker) })
			t.Run(h.id+where+string(h.control)+" warn", func(t *testing.T) { h.warned(t, asWorker) })
			t.Run(h.id+where+string(h.control)+" off", func(t *testing.T) { h.ignored(t, asWorker) })
		}
	}
}

func (h held) enforced(t *testing.T, asWorker bool) {
	got := h.finish(t, envelope.Enforce, h.answer, asWorker)
	status := envelope.OK
	if h.kind != "" {
		status = envelope.Failed
	}
	if got.Status != status || got.Error.Kind != h.kind || got.Output.Summary != "kept" {
		t.Errorf("status %q, error %+v, summary %q; want %q, %q, and the answer kept", got.Status, got.Error, got.Output.Summary, status, h.kind)
	}
	if !got.Review.Required || !strings.HasPrefix(got.Review.Reason, h.reason) {
		t.Errorf("review = %+v; want %q", got.Review, h.reason)
	}
	if level := got.Output.Enforcement[h.control]; level != h.level {
		t.Errorf("enforcement = %q; want %q", level, h.level)
	}
	got = h.finish(t, envelope.Enforce, h.fine, asWorker)
	if got.Status == envelope.Failed || got.Review.Required {
		t.Errorf("a right answer is %q, %+v, with review %+v; want nothing wrong with it", got.Status, got.Error, got.Review)
	}
	want := h.level
	if h.spent != "" {
		want = h.spent
	}
	if level := got.Output.Enforcement[h.control]; level != want {
		t.Errorf("enforcement of a right answer = %q; want %q", level, want)
	}
}

func (h held) warned(t *testing.T, asWorker bool) {
	got := h.finish(t, envelope.Warn, h.answer, asWorker)
	if got.Status != envelope.OK || got.Error != (envelope.Error{}) || !strings.HasPrefix(got.Review.Reason, h.reason) {
		t.Errorf("status %q, error %+v, review %+v; want ok, and %q said", got.Status, got.Error, got.Review, h.reason)
	}
	if asks := h.kind != ""; got.Review.Required != asks {
		t.Errorf("review required = %v; want %v", got.Review.Required, asks)
	}
	if level := got.Output.Enforcement[h.control]; level != envelope.LevelAdvisory {
		t.Errorf("enforcement = %q; want advisory", level)
	}
}

func (h held) ignored(t *testing.T, asWorker bool) {
	got := h.finish(t, envelope.Off, h.answer, asWorker)
	if got.Status != envelope.OK || got.Review != (envelope.Review{}) {
		t.Errorf("status %q, review %+v; want ok, and nothing said", got.Status, got.Review)
	}
	if level, claimed := got.Output.Enforcement[h.control]; claimed {
		t.Errorf("enforcement = %q; want nothing claimed", level)
	}
}

func TestAFailureKeepsItsCauseAndOwesNoContract(t *testing.T) {
	h := holds(t)[1]
	got := h.finish(t, envelope.Enforce, `{"status": "error", "output": {"summary": ""}, "error": {"kind": "quota"}}`, false)
	if got.Error.Kind != "quota" || got.Review.Required {
		t.Errorf("error %+v, review %+v; want the agent's own failure alone", got.Error, got.Review)
	}
}

func TestAToolReportThatCannotBeReadIsReviewed(t *testing.T) {
	h := held{control: envelope.ControlTools, terms: task.Terms{Tools: []string{"http"}}}
	for answer, review := range map[string]bool{
		`{"summary": "s", "tools_used": "http"}`:     true,
		`{"summary": "s", "tools_used": [{"n": 1}]}`: true,
		`{"summary": "s", "actions": [{"tool": ["http"], "kind": "k", "description": "d", "status": "skipped"}]}`: true,
		`{"summary": "s", "tools_used": null}`:                                       false,
		`{"agent_id": "tester", "output": {"summary": "s"}, "tools_used": ["http"]}`: false,
	} {
		if got := h.finish(t, envelope.Enforce, answer, false); got.Status != envelope.OK || got.Review.Required != review {
			t.Errorf("%s: status %q, review %+v; want ok, review %v", answer, got.Status, got.Review, review)
		}
	}
	got := h.finish(t, envelope.Enforce, `{"agent_id": "tester", "output": {"summary": "s"}, "tools_used": ["fs"]}`, false)
	if got.Error.Kind != envelope.PolicyViolation {
		t.Errorf("error = %+v; want a report beside the output to count", got.Error)
	}
	h.terms.Tools = nil
	if got = h.finish(t, envelope.Enforce, `{"summary": "s", "tools_used": ["fs"]}`, false); got.Status != envelope.OK || len(got.Output.Enforcement) > 0 {
		t.Errorf("status %q, enforcement %v; want no tools held where nobody named any", got.Status, got.Output.Enforcement)
	}
}
