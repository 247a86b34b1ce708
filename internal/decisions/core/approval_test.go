package core_test

import (
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestAnApprovalCoversOnlyItsContentUntilItExpires(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	asked := task.Verdict{Terms: task.Terms{Approver: "bob", Proof: task.ProofKey}, Digest: "d1"}
	given := func(change func(*task.Consent)) *task.Consent {
		c := task.Consent{Decision: task.Approved, Digest: "d1", Approver: "bob", Expires: now.Add(time.Second), Proof: task.Proof{Level: task.ProofKey}}
		change(&c)
		return &c
	}
	for _, test := range []struct {
		name    string
		consent *task.Consent
		began   bool
		covers  bool
	}{
		{"no approval", nil, false, false},
		{"an approval that is valid", given(func(*task.Consent) {}), false, true},
		{"an approval without an end", given(func(c *task.Consent) { c.Expires = time.Time{} }), false, true},
		{"an approval that ends now", given(func(c *task.Consent) { c.Expires = now }), false, false},
		{"an approval that has ended", given(func(c *task.Consent) { c.Expires = now.Add(-time.Hour) }), false, false},
		{"an approval that has ended after an attempt began", given(func(c *task.Consent) { c.Expires = now }), true, true},
		{"an open question", given(func(c *task.Consent) { c.Decision = task.Undecided }), false, false},
		{"a denial", given(func(c *task.Consent) { c.Decision = task.Denied }), true, false},
		{"an approval of other content", given(func(c *task.Consent) { c.Digest = "d2" }), true, false},
		{"an approval by another approver", given(func(c *task.Consent) { c.Approver = "ann" }), true, false},
		{"an approval with less proof than the policy needs", given(func(c *task.Consent) { c.Proof.Level = task.ProofTerminal }), true, false},
		{"an approval whose proof does not hold", given(func(c *task.Consent) { c.Proof.Unproven = "the key was removed" }), true, false},
	} {
		if got := core.Covers(test.consent, asked, test.began, now); got != test.covers {
			t.Errorf("%s covers the start: %t; want %t", test.name, got, test.covers)
		}
	}
}

func TestAStartIsAskedAboutAgainWhenItsApprovalHasExpired(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Until: now}
	verdict := task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "d1"}
	for _, test := range []struct {
		name    string
		expires time.Time
		want    task.State
		ends    task.Decision // of the approval, or of the question in its place
	}{
		{"valid for another second", now.Add(time.Second), task.Queued, task.Approved},
		{"expired", now, task.Held, task.Undecided},
	} {
		approval := &task.Consent{Task: 1, Decision: task.Approved, Digest: "d1", Expires: test.expires}
		state := core.NewState(core.Task{Task: held, Start: approval})
		events, err := core.Decide(state, &core.Judge{Task: 1, Seen: core.See(held), Verdict: verdict}, core.Config{ApprovalTTL: time.Hour}, now)
		if err != nil {
			t.Fatal(err)
		}
		core.Apply(state, events)
		if queued := test.want == task.Queued; queued && !state.Task(1).Until.IsZero() {
			t.Errorf("a queued task has the time %v; want none", state.Task(1).Until)
		}
		if after := state.Task(1); after.State != test.want || after.Start.Decision != test.ends {
			t.Errorf("with an approval that is %s the task is %s, and its approval %q; want %s, %q", test.name, after.State, after.Start.Decision, test.want, test.ends)
		}
	}
}

func TestAnApprovalThatNoLongerCoversTheStartSaysWhy(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Until: now}
	verdict := task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "d1", Terms: task.Terms{Proof: task.ProofKey}}
	for _, test := range []struct {
		name  string
		level task.ProofLevel
		want  task.Decision
		note  string
	}{
		{"with the proof that is needed", task.ProofKey, task.Expired, "the task was not started in time"},
		{"with too little proof", task.ProofTerminal, task.Void, "policy.proof needs an approval with proof ssh, and this one has terminal"},
	} {
		ended := task.Consent{Task: 1, Decision: task.Approved, Digest: "d1", Expires: now.Add(-time.Second), Proof: task.Proof{Level: test.level}}
		state := core.NewState(core.Task{Task: held, Start: &ended})
		events, err := core.Decide(state, &core.Judge{Task: 1, Seen: core.See(held), Verdict: verdict}, core.Config{ApprovalTTL: time.Hour}, now)
		if err != nil {
			t.Fatal(err)
		}
		var concluded []*core.Concluded
		for _, e := range events {
			if c, ok := e.Change.(*core.Concluded); ok {
				concluded = append(concluded, c)
			}
		}
		if len(concluded) != 1 || concluded[0].Consent.Decision != test.want || concluded[0].Consent.Note != test.note {
			t.Errorf("an approval %s whose time is over: %+v; want %s: %s", test.name, concluded, test.want, test.note)
		}
	}
}

func TestWithoutAnApprovalTTLAQuestionHasNoEnd(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Until: now}
	verdict := task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "d1"}
	state := core.NewState(core.Task{Task: held})
	events, err := core.Decide(state, &core.Judge{Task: 1, Seen: core.See(held), Verdict: verdict}, core.Config{}, now)
	if err != nil {
		t.Fatal(err)
	}
	core.Apply(state, events)
	if start := state.Task(1).Start; start == nil || start.Decision != task.Undecided || !start.Expires.IsZero() {
		t.Errorf("the question is %+v; want an open one without an end", start)
	}
}
