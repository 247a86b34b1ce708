package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

func TestAnOddJSONAnswerIsReviewed(t *testing.T) {
	got := recovered(t, agent.JSON, `{"summary": "s", "enforcement": {"tools": "kernel"}, "actions": [{"kind": "k", "description": "d", "status": "maybe"}]}`).Result
	want := `enforcement: is for mailboxd to say: left out; actions[0].status: is "maybe", not "pending", "executed" or "skipped"`
	if got.Status != envelope.OK || got.Review != (envelope.Review{Required: true, Reason: want}) {
		t.Errorf("status %q, review %+v; want ok, and %s", got.Status, got.Review, want)
	}
}

func TestWhoHeldWhatComesFromTheTermsAndTheRun(t *testing.T) {
	b := playing(t, "tell", "--tools={{.AllowedTools}}", "--run={{.RunID}}")
	b.Output = agent.JSON
	terms := task.Terms{Tools: []string{"http", "fs"}, Levels: envelope.Levels{
		envelope.ControlRole: envelope.LevelDaemon, envelope.ControlBudget: envelope.LevelObserved, envelope.ControlTools: envelope.LevelAdvisory,
	}}
	j := jobFor(t, request(""))
	j.Terms = terms
	want := envelope.Levels{
		envelope.ControlRole: envelope.LevelDaemon, envelope.ControlTools: envelope.LevelAgentFlag,
		envelope.ControlBudget: envelope.LevelAdvisory, // nobody reported a cost
	}
	got := bound(t, b).Run(t.Context(), j, nil).Result
	if diff := cmp.Diff(want, got.Output.Enforcement); diff != "" {
		t.Errorf("enforcement differs (-want +got):\n%s", diff)
	}
	if len(terms.Levels) != 3 || terms.Levels[envelope.ControlTools] != envelope.LevelAdvisory {
		t.Errorf("the terms have become %v; want them as they were", terms.Levels)
	}
	// The same run, recovered under another command.
	other := playing(t, "tell", "--allow={{.AllowedTools}}")
	other.Output = agent.JSON
	for binding, level := range map[*agent.Binding]envelope.Level{&b: envelope.LevelAgentFlag, &other: envelope.LevelAdvisory} {
		if got := bound(t, *binding).Recover(t.Context(), j).Result; got.Output.Enforcement[envelope.ControlTools] != level {
			t.Errorf("recovered under %q: enforcement %v; want tools %q", binding.Command[3:], got.Output.Enforcement, level)
		}
	}
	j = jobFor(t, request(""))
	j.Tools = []string{}
	if got := bound(t, b).Run(t.Context(), j, nil).Result; got.Output.Enforcement[envelope.ControlTools] != envelope.LevelAdvisory {
		t.Errorf("enforcement %v; want an empty list advisory: nobody knows how the agent takes it", got.Output.Enforcement)
	}
}

func TestEveryResultSaysWhoHeldWhat(t *testing.T) {
	agents, err := agent.New(nil, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	missing := agent.Binding{ID: "tester", Command: []string{"/nonexistent/agent"}}
	for name, got := range map[string]task.Outcome{
		"no such agent": agents.Run(t.Context(), jobFor(t, request("")), nil),
		"lost":          agents.Recover(t.Context(), jobFor(t, request(""))),
		"not started":   outcome(t, missing),
	} {
		if got.Result.Output.Enforcement == nil {
			t.Errorf("%s: enforcement is missing; want it there, if empty", name)
		}
	}
}
