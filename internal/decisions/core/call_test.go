package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A run asks about calls, people decide, time passes, and the run ends.
func TestAQuestionAboutACallIsAskedOnceAndEndsOnce(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	terms := task.Terms{Approver: "ada", Calls: &task.CallRules{Otherwise: task.AskPerson, Timeout: time.Minute}}
	state := core.NewState(core.Task{
		Task: task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Running, Attempt: 2},
		Run:  &task.Run{Task: 1, Attempt: 2, Terms: terms},
	})
	decide := func(c core.Command, at time.Duration) error {
		events, err := core.Decide(state, c, core.Config{}, now.Add(at))
		core.Apply(state, events)
		return err
	}
	ask := func(digest string) core.Command {
		return &core.AskCall{Task: 1, Attempt: 2, Digest: digest, Content: []byte(`{}`), Terms: terms}
	}
	answer := func(digest string, decision task.Decision) core.Command {
		return &core.Answer{Task: 1, Seen: core.See(state.Task(1).Task), Digest: digest, Decision: decision, Person: core.Person{Names: []string{"ada"}}, Note: "so"}
	}
	want := func(step string, waits bool, decisions ...task.Decision) {
		t.Helper()
		var got []task.Decision
		for _, c := range state.Task(1).Calls {
			got = append(got, c.Decision)
		}
		if diff := cmp.Diff(decisions, got); diff != "" || (len(state.Task(1).Reasons) > 0) != waits {
			t.Errorf("after %s, it waits for %v, and the decisions are (-want +got):\n%s", step, state.Task(1).Reasons, diff)
		}
	}
	for range 2 {
		if err := decide(ask("d1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	want("one question", true, task.Undecided)
	_ = decide(ask("d2"), 0)
	want("two questions", true, task.Undecided, task.Undecided)
	if err := decide(answer("d0", task.Approved), 0); err != core.ErrChanged {
		t.Errorf("an answer to no question: %v; want that it has changed", err)
	}
	if err := decide(answer("d2", task.Approved), 0); err != nil {
		t.Fatal(err)
	}
	want("an answer to the second", true, task.Undecided, task.Approved)
	_ = decide(&core.ExpireCall{Task: 1, Digest: "d1"}, time.Second)
	want("a second", true, task.Undecided, task.Approved)
	if err := decide(answer("d1", task.Approved), time.Hour); err != core.ErrTooLate {
		t.Errorf("an answer after the time limit: %v; want that it is too late", err)
	}
	_ = decide(&core.ExpireCall{Task: 1, Digest: "d1"}, time.Hour)
	want("an hour", false, task.Expired, task.Approved)
	_ = decide(ask("d3"), time.Hour)
	run := task.Run{Task: 1, Attempt: 2, Terms: terms}
	if err := decide(&core.Finish{Task: 1, Run: run, Status: "ok", Result: []byte(`{}`), Terms: terms, Show: task.KindTaskFinished}, time.Hour); err != nil {
		t.Fatal(err)
	}
	want("the end of the run", false, task.Expired, task.Approved, task.Void)
	if err := decide(ask("d4"), time.Hour); err != core.ErrStale {
		t.Errorf("a question after the end: %v; want that it is stale", err)
	}
}

func TestAnApprovalOfACallCountsAsLongAsItsProofHolds(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	given := task.Consent{Decision: task.Approved, Decider: "ada", Note: "so", Expires: now.Add(time.Second), Proof: task.Proof{Level: task.ProofKey}}
	terms := task.Terms{Proof: task.ProofKey}
	for name, test := range map[string]struct {
		change func(*task.Consent)
		want   task.CallAnswer
	}{
		"an approval":                 {func(*task.Consent) {}, task.AllowCall},
		"an open question":            {func(c *task.Consent) { c.Decision = task.Undecided }, ""},
		"a denial":                    {func(c *task.Consent) { c.Decision = task.Denied }, task.RejectCall},
		"a question without a time":   {func(c *task.Consent) { c.Decision = task.Expired }, task.RejectCall},
		"a question that was ended":   {func(c *task.Consent) { c.Decision = task.Void }, task.RejectCall},
		"an approval that has ended":  {func(c *task.Consent) { c.Expires = now }, task.RejectCall},
		"a proof that does not hold":  {func(c *task.Consent) { c.Proof.Unproven = "the key was removed" }, task.RejectCall},
		"less proof than policy asks": {func(c *task.Consent) { c.Proof.Level = task.ProofTerminal }, task.RejectCall},
	} {
		c := given
		test.change(&c)
		if got := core.CallDecisionOf(c, terms, now); got.Answer != test.want {
			t.Errorf("%s means %q; want %q", name, got.Answer, test.want)
		}
	}
}
