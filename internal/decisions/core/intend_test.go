package core_test

import (
	"errors"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// noon is when the runs of these tests are intended.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// accountOf is the daily account of an owner.
func accountOf(owner string, limit envelope.Budget) task.Account {
	return task.Account{Owner: owner, Day: task.Day(noon), Limit: limit}
}

// intend intends the run of a queued task with accounts, and returns what it may spend.
func intend(s core.Spending, stay bool, accounts ...task.Account) (reserved *int64, events int, err error) {
	row := task.Task{Seq: 9, ID: "t", Revision: 1, Latest: true, State: task.Queued, Attempt: 1, Agent: "a"}
	c := &core.Intend{
		Task: 9, Attempt: 1, Agent: "a", To: task.Running, Spending: s, Stay: stay,
		Run: task.Run{Task: 9, Attempt: 1, Intent: noon, Terms: task.Terms{Accounts: accounts}},
	}
	happened, err := core.Decide(core.NewState(core.Task{Task: row}), c, core.Config{}, noon)
	for _, e := range happened {
		if intended, ok := e.Change.(*core.RunIntended); ok {
			reserved = intended.Run.Reserved.Tokens
		}
	}
	return reserved, len(happened), err
}

func TestARunTakesWhatIsLeftOfAnAccountToItsLastToken(t *testing.T) {
	for name, c := range map[string]struct {
		limit, spent, reserved int64
		want                   int64 // -1: it can't begin
		waits                  bool
	}{
		"all is left":                  {10, 0, 0, 10, false},
		"one is left":                  {10, 9, 0, 1, false},
		"nothing is left":              {10, 10, 0, -1, false},
		"others have reserved all":     {10, 0, 10, -1, true},
		"others leave one":             {10, 4, 5, 1, false},
		"nothing is needed of nothing": {0, 0, 0, 0, false},
		"more than nothing is spent":   {0, 1, 0, -1, false},
	} {
		account := accountOf("us", tokens(c.limit))
		balance := task.Balance{Spent: envelope.Cost{Tokens: c.spent}, Reserved: envelope.Cost{Tokens: c.reserved}}
		got, _, err := intend(core.Spending{Balances: map[task.Key]task.Balance{account.Key(): balance}}, false, account)
		short, lacks := errors.AsType[*core.Shortfall](err)
		switch {
		case c.want < 0 && (!lacks || short.Waits != c.waits):
			t.Errorf("%s: reserved %v, %v; want a shortfall, waiting helps: %t", name, got, err, c.waits)
		case c.want >= 0 && (err != nil || got == nil || *got != c.want):
			t.Errorf("%s: reserved %v, %v; want %d", name, got, err, c.want)
		}
	}
}

func TestATaskThatStaysInTheQueueIsNotMovedByAShortfall(t *testing.T) {
	account := accountOf("us", tokens(10))
	full := core.Spending{Balances: map[task.Key]task.Balance{account.Key(): {Reserved: envelope.Cost{Tokens: 10}}}}
	if _, n, err := intend(full, true, account); n != 0 || err == nil {
		t.Errorf("with Stay: %d events, %v; want none and the shortfall", n, err)
	}
	if _, n, err := intend(full, false, account); n == 0 || err == nil {
		t.Errorf("without Stay: %d events, %v; want the task held", n, err)
	}
	if _, n, err := intend(core.Spending{}, true, account); n == 0 || err != nil {
		t.Errorf("with Stay and enough: %d events, %v; want the intent", n, err)
	}
}

// The amount that a parent has reserved is already counted in its accounts.
func TestAChildDoesNotCountTwiceInTheAccountsOfItsParent(t *testing.T) {
	ours, theirs := accountOf("us", tokens(10)), accountOf("them", tokens(10))
	full := map[task.Key]task.Balance{ours.Key(): {Reserved: envelope.Cost{Tokens: 10}}, theirs.Key(): {Reserved: envelope.Cost{Tokens: 10}}}
	parent := func(reserved envelope.Budget) core.Spending {
		run := task.Run{Task: 1, Attempt: 1, Intent: noon, Reserved: reserved, Terms: task.Terms{Accounts: []task.Account{ours}}}
		tree := task.TreeCost{Reserved: envelope.Cost{Tokens: 10}}
		return core.Spending{Balances: full, Ancestors: []core.Ancestor{{Task: task.Task{Seq: 1, ID: "p", State: task.Running}, Run: run, Tree: tree}}}
	}
	if got, _, err := intend(parent(tokens(10)), false); err != nil || got == nil || *got != 10 {
		t.Errorf("of the parent's reservation: %v, %v; want all of it", got, err)
	}
	if got, _, err := intend(parent(tokens(10)), false, theirs); err == nil {
		t.Errorf("with an account that the parent doesn't have: %v; want a shortfall", got)
	}
	if got, _, err := intend(parent(envelope.Budget{}), false); err == nil {
		t.Errorf("without a reservation of the parent: %v; want a shortfall", got)
	}
}

func TestAHoldOrARefusalOfATaskThatMovedOnIsStale(t *testing.T) {
	row := task.Task{Seq: 9, ID: "t", Revision: 1, Latest: true, State: task.Queued, Attempt: 1, Agent: "a"}
	for state, ok := range map[task.State]bool{task.Held: true, task.Queued: true, task.Waiting: true, task.Running: false, task.Review: false, task.Done: false} {
		now := row
		now.State = state
		_, err := core.Decide(core.NewState(core.Task{Task: now}), &core.RefuseAnswer{Task: 9, Seen: core.See(now)}, core.Config{}, noon)
		if (err == nil) != ok {
			t.Errorf("RefuseAnswer of a task that is %s: %v; want it taken: %t", state, err, ok)
		}
	}
	for attempt, ok := range map[int]bool{1: true, 2: false} {
		_, err := core.Decide(core.NewState(core.Task{Task: row}), &core.HoldRecovered{Task: 9, Attempt: attempt, Last: 1}, core.Config{}, noon)
		if (err == nil) != ok {
			t.Errorf("HoldRecovered of attempt %d: %v; want it taken: %t", attempt, err, ok)
		}
	}
}
