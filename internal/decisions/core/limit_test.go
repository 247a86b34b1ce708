package core_test

import (
	"errors"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestABudgetIsOverspentAboveItsAmountAndUsedUpAtIt(t *testing.T) {
	cents := int64(3)
	for name, c := range map[string]struct {
		limit             envelope.Budget
		spent, reserved   envelope.Cost
		overspent, usedUp bool
	}{
		"less":                   {tokens(100), envelope.Cost{Tokens: 99}, envelope.Cost{}, false, false},
		"less, with reserved":    {tokens(100), envelope.Cost{Tokens: 50}, envelope.Cost{Tokens: 49}, false, false},
		"the amount":             {tokens(100), envelope.Cost{Tokens: 100}, envelope.Cost{}, false, true},
		"the amount by reserved": {tokens(100), envelope.Cost{Tokens: 50}, envelope.Cost{Tokens: 50}, false, true},
		"more":                   {tokens(100), envelope.Cost{Tokens: 101}, envelope.Cost{}, true, true},
		"no limit":               {envelope.Budget{}, envelope.Cost{Tokens: 101, USDCents: 9}, envelope.Cost{}, false, false},
		"more cents":             {envelope.Budget{USDCents: &cents}, envelope.Cost{Tokens: 9, USDCents: 4}, envelope.Cost{}, true, true},
	} {
		if got := core.Overspent(c.limit, c.spent); (got != "") != c.overspent {
			t.Errorf("%s: Overspent = %q; want one: %t", name, got, c.overspent)
		}
		if got := core.UsedUp(c.limit, task.Balance{Spent: c.spent, Reserved: c.reserved}); (got != "") != c.usedUp {
			t.Errorf("%s: UsedUp = %q; want one: %t", name, got, c.usedUp)
		}
	}
}

// Work under an expired lease isn't lost unless another program has the task.
func TestATokenAllowsAnAnswerUnlessAnotherProgramHasTheTask(t *testing.T) {
	now := time.Unix(100, 0)
	for name, c := range map[string]struct {
		state   task.State
		attempt int
		until   time.Time // the end of the lease
		token   string
		want    error
	}{
		"the token of the lease":         {task.Waiting, 1, now.Add(1), "s", nil},
		"another token":                  {task.Waiting, 1, now.Add(1), "x", core.ErrLeased},
		"no token while it is claimed":   {task.Waiting, 1, now.Add(1), "", core.ErrLeased},
		"the last token after the lease": {task.Waiting, 1, now, "s", nil},
		"another one after the lease":    {task.Waiting, 1, now, "x", core.ErrLeaseOver},
		"no token after the lease":       {task.Waiting, 1, now, "", nil},
	} {
		row := &core.Task{Task: task.Task{ID: "t", State: c.state, Attempt: 1, Until: c.until}, Token: "s"}
		if err := core.CheckToken(row, c.attempt, c.token, now); !errors.Is(err, c.want) {
			t.Errorf("%s: CheckToken = %v; want %v", name, err, c.want)
		}
	}
	for name, row := range map[string]task.Task{
		"another attempt": {ID: "t", State: task.Waiting, Attempt: 2}, "a task that runs": {ID: "t", State: task.Running, Attempt: 1},
	} {
		if err := core.CheckToken(&core.Task{Task: row, Token: "s"}, 1, "s", now); err == nil {
			t.Errorf("%s: CheckToken = nil; want it refused", name)
		}
	}
}
