package core_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A change is what moves a task that was queued, as its row says it.
func TestEachMoveSaysWhenTheTaskIsLookedAtAgain(t *testing.T) {
	now := time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC)
	soon, later, midnight := now.Add(time.Minute), now.Add(time.Hour), now.Add(2*time.Hour)
	row := func(state task.State, until time.Time, reasons ...task.Reason) core.Task {
		return core.Task{
			Task: task.Task{Seq: 1, ID: "t", Latest: true, State: state, Reasons: reasons, Until: until, Deadline: later},
			Run:  &task.Run{Task: 1, Attempt: 0, Terms: task.Terms{Deadline: soon}},
		}
	}
	for name, c := range map[string]struct {
		of      core.Task
		command core.Command
		due     time.Time
	}{
		"a hold, until its end":            {row(task.Queued, time.Time{}), judged(soon, task.ChangeWindow), soon},
		"a hold without an end, never":     {row(task.Queued, time.Time{}), judged(time.Time{}, task.Paused), time.Time{}},
		"a queued task, at its deadline":   {row(task.Held, soon, task.ChangeWindow), judged(time.Time{}), later},
		"a pause, when the engine says":    {row(task.Running, time.Time{}), &core.Retry{Task: 1, Until: soon, Data: map[string]any{}}, time.Time{}},
		"what follows, at its deadline":    {row(task.Held, soon, task.SameCommand, task.Operator), &core.Release{Task: 1}, later},
		"a release, at once":               {row(task.Held, later, task.Operator), &core.Release{Task: 1}, now},
		"a claim, at the end of the run":   {row(task.Waiting, time.Time{}), &core.Claim{Task: 1, Lasts: time.Hour}, soon},
		"a claim, at the end of the lease": {row(task.Waiting, time.Time{}), &core.Claim{Task: 1, Lasts: time.Second}, now.Add(time.Second)},
		"budget, at midnight":              {row(task.Queued, time.Time{}), short(), midnight},
		"a review, until its end":          {row(task.Running, time.Time{}), &core.Finish{Task: 1, Overseen: true, ReviewUntil: soon}, soon},
		"a start, never":                   {row(task.Queued, time.Time{}), &core.Intend{Task: 1, To: task.Running}, time.Time{}},
		"an offer, at the end of its run": {
			row(task.Queued, time.Time{}), &core.Intend{Task: 1, To: task.Waiting, Run: task.Run{Terms: task.Terms{Deadline: soon}}}, soon,
		},
	} {
		if name == "budget, at midnight" {
			c.of.Deadline = now.Add(24 * time.Hour)
		}
		events, _ := core.Decide(core.NewState(c.of), seenBy(c.command, c.of), core.Config{}, now)
		moved := false
		for _, e := range events {
			if m, ok := e.Change.(*core.Moved); ok {
				moved = true
				if !m.Due.Equal(c.due) {
					t.Errorf("%s: due at %v; want %v", name, m.Due, c.due)
				}
			}
		}
		if !moved {
			t.Errorf("%s: the task isn't moved", name)
		}
	}
}

// judged is a verdict that holds a task for reasons until a time.
func judged(until time.Time, reasons ...task.Reason) core.Command {
	return &core.Judge{Task: 1, Verdict: task.Verdict{Admit: true, Hold: reasons, Until: until}}
}

// short is a start for which an account has too little left today.
func short() core.Command {
	limit := envelope.Budget{Tokens: new(int64(10))}
	account := task.Account{Owner: "o", Limit: limit}
	return &core.Intend{
		Task: 1, To: task.Running,
		Run: task.Run{Intent: time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC), Terms: task.Terms{Accounts: []task.Account{account}}},
		Spending: core.Spending{Balances: map[task.Key]task.Balance{
			task.AccountKey("o", "2026-05-01"): {Reserved: envelope.Cost{Tokens: 10}},
		}},
	}
}

// seenBy returns a command whose facts are of a task.
func seenBy(c core.Command, t core.Task) core.Command {
	switch c := c.(type) {
	case *core.Judge:
		c.Seen = core.See(t.Task)
	case *core.Release:
		c.Seen = core.See(t.Task)
	case *core.Finish:
		c.Seen = core.See(t.Task)
	}
	return c
}
