package core_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// The top task lends, and began before the account had a limit; the task between has the limit.
// Schedule 303239 of the simulator lost it.
func TestTheLimitOfAnAncestorHoldsAlsoWhenItsParentLends(t *testing.T) {
	day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	most := int64(100)
	limited := task.Account{Owner: "requester:ann", Limit: envelope.Budget{Tokens: &most}, Day: task.Day(day)}
	s := core.Spending{Ancestors: []core.Ancestor{
		{
			Task: task.Task{Seq: 2, State: task.Done, Requester: "ann", Agent: "b"},
			Run:  task.Run{Task: 2, Attempt: 1, Intent: day, Settled: true, Terms: task.Terms{Accounts: []task.Account{limited}}},
		},
		{
			Task: task.Task{Seq: 1, State: task.Running, Requester: "ann", Agent: "a"},
			Run:  task.Run{Task: 1, Attempt: 1, Intent: day},
		},
	}}
	for _, a := range s.Accounts(task.Run{Task: 3, Attempt: 1, Intent: day}) {
		if a.Owner == limited.Owner {
			if a.Limit.Tokens == nil || *a.Limit.Tokens != most {
				t.Errorf("the limit of %s is %v; want %d tokens", a.Owner, a.Limit, most)
			}
			return
		}
	}
	t.Errorf("the run counts for no account of %s", limited.Owner)
}
