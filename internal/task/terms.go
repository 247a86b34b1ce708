package task

import (
	"slices"
	"time"

	"mailboxd/envelope"
)

// Terms are what a task is, or was, admitted with: the limits of its run, and what
// has to happen after it. They are kept with the run, so that it ends under them also
// when the rules have changed by then.
type Terms struct {
	Tools    []string          `json:"tools,omitzero"`    // what it may use (AINL-47); nil: not specified
	Deadline time.Time         `json:"deadline,omitzero"` // when it must be over; zero: no limit
	Timeout  time.Duration     `json:"timeout,omitzero"`  // for the whole run, beside the agent's own; 0: no limit
	Budget   envelope.Budget   `json:"budget,omitzero"`   // what the task may spend, over all its runs (AINL-46)
	Expected envelope.Budget   `json:"expected,omitzero"` // what it should spend, where budgets only warn
	Accounts []Account         `json:"accounts,omitzero"` // what else its spending counts for
	Approval envelope.Approval `json:"approval,omitzero"` // when a person must agree (AINL-48)
	Approver string            `json:"approver,omitzero"` // the only one who may (AINL-49); "" for every approver
	Levels   envelope.Levels   `json:"levels,omitzero"`   // which component enforces which control
}

// An Account is a budget that many tasks share for a day.
type Account struct {
	Owner string          `json:"owner"`        // "requester:planner.agent", "agent:openclaw.monitor"
	Limit envelope.Budget `json:"limit"`        // of one day, in UTC
	Day   string          `json:"day,omitzero"` // as Day names it; "" before a run begins
}

// Day names the day of an instant, in UTC, as accounts do.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// DailyAccounts are the accounts of the day that a run counts for besides those of
// its terms: its requester's and its agent's.
func DailyAccounts(t Task, r Run) (more []Account) {
	for _, owner := range []string{"requester:" + t.Requester, "agent:" + t.Agent} {
		if !slices.ContainsFunc(r.Terms.Accounts, func(a Account) bool { return a.Owner == owner }) {
			more = append(more, Account{Owner: owner, Day: Day(r.Intent)})
		}
	}
	return more
}

// A Balance is where an account stands.
type Balance struct {
	Account
	Reserved envelope.Cost // for runs that are not over
	Spent    envelope.Cost // by runs that are over; unknown spending counts as it was reserved
	Unknown  int           // how many of them have unknown spending
}

// A TreeCost is what the runs of a task and of all tasks below it have spent, and what
// is reserved for the runs that are not over.
type TreeCost struct {
	Spent    envelope.Cost
	Reserved envelope.Cost
}

// MaxAmount is the most that is counted of what one run spends or may spend. An agent
// can claim any number, and sums of many have to stay numbers.
const MaxAmount = 1 << 40
