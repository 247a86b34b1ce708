package core_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A hold that would last beyond the deadline would keep a task that may no longer start.
func TestATaskThatIsHeldWaitsUntilItsDeadlineAtMost(t *testing.T) {
	deadline, sooner := time.Unix(100, 0), time.Unix(50, 0)
	admits := task.Verdict{Admit: true, Terms: task.Terms{Deadline: deadline}}
	waits := admits
	waits.Hold, waits.Until = []task.Reason{task.ChangeWindow}, sooner
	for name, c := range map[string]struct {
		got   task.Verdict
		hold  []task.Reason
		until time.Time
	}{
		"one reason":                   {core.Held(admits, task.Paused), []task.Reason{task.Paused}, deadline},
		"one reason more":              {core.Held(waits, task.Paused), []task.Reason{task.ChangeWindow, task.Paused}, sooner},
		"the same reason":              {core.Held(waits, task.ChangeWindow), []task.Reason{task.ChangeWindow}, sooner},
		"no reason":                    {core.Held(admits), nil, time.Time{}},
		"a refusal":                    {core.Held(task.Verdict{Terms: admits.Terms}, task.Paused), nil, time.Time{}},
		"a reason with an earlier end": {core.HeldUntil(admits, task.ProviderLimit, sooner), []task.Reason{task.ProviderLimit}, sooner},
		"a reason with a later end":    {core.HeldUntil(admits, task.ProviderLimit, deadline.Add(1)), []task.Reason{task.ProviderLimit}, deadline},
		"a refusal with an end":        {core.HeldUntil(task.Verdict{Terms: admits.Terms}, task.ProviderLimit, sooner), nil, time.Time{}},
	} {
		if !slices.Equal(c.got.Hold, c.hold) || !c.got.Until.Equal(c.until) {
			t.Errorf("%s: held for %v until %v; want %v until %v", name, c.got.Hold, c.got.Until, c.hold, c.until)
		}
	}
}

// The content that the approver saw must be the content that would run now.
func TestAnApprovalOfContentThatHasChangedSinceIsRefused(t *testing.T) {
	now := time.Unix(100, 0)
	held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Reasons: []task.Reason{task.Approval}}
	asks := func(digest, approver string) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: digest, Terms: task.Terms{Approver: approver}}
	}
	for name, c := range map[string]struct {
		saw     string
		verdict task.Verdict
		want    error
	}{
		"the same":             {"d1", asks("d1", "bob"), nil},
		"other content seen":   {"d2", asks("d1", "bob"), core.ErrChanged},
		"other content now":    {"d1", asks("d2", "bob"), core.ErrChanged},
		"another approver now": {"d1", asks("d1", "ann"), core.ErrChanged},
		"no approval needed":   {"d1", task.Verdict{Admit: true}, nil},
	} {
		question := &task.Consent{Task: 1, Digest: "d1", Approver: "bob"}
		state := core.NewState(core.Task{Task: held, Start: question})
		answer := &core.Answer{Task: 1, Seen: core.See(held), Decision: task.Approved, Person: core.Person{Names: []string{"bob"}}, Digest: c.saw, Verdict: c.verdict}
		if _, err := core.Decide(state, answer, core.Config{}, now); !errors.Is(err, c.want) {
			t.Errorf("%s: Decide(Answer) = %v; want %v", name, err, c.want)
		}
	}
}
