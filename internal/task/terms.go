package task

import (
	"time"

	"mailboxd/envelope"
)

// Terms are what a task is, or was, admitted with: the limits of its run, and
// what has to happen after it. They are kept with the run, so that it ends
// under them also when the rules are others by then.
type Terms struct {
	Tools    []string          `json:"tools,omitzero"`    // what it may use (AINL-47); nil: nobody said
	Deadline time.Time         `json:"deadline,omitzero"` // when it must be over; zero: no limit
	Timeout  time.Duration     `json:"timeout,omitzero"`  // for the whole run, beside the agent's own; 0: no limit
	Budget   envelope.Budget   `json:"budget,omitzero"`   // what the task may spend, over all its runs (AINL-46)
	Expected envelope.Budget   `json:"expected,omitzero"` // what it should spend, where budgets only warn
	Accounts []Account         `json:"accounts,omitzero"` // what else its spending counts for
	Approval envelope.Approval `json:"approval,omitzero"` // when a person must agree (AINL-48)
	Approver string            `json:"approver,omitzero"` // the only one who may (AINL-49); "" for anybody who may at all
	Levels   envelope.Levels   `json:"levels,omitzero"`   // who holds which control
}

// An Account is a budget that many tasks share for a day.
type Account struct {
	Owner string          `json:"owner"`        // whose: "requester:planner.agent", "agent:openclaw.monitor"
	Limit envelope.Budget `json:"limit"`        // of one day, in UTC
	Day   string          `json:"day,omitzero"` // which day that is, as Day names it; "" before a run is begun
}

// Day names the day of an instant, in UTC, as accounts do.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// A Balance is where an account stands.
type Balance struct {
	Account
	Reserved envelope.Cost // for runs that are not over
	Spent    envelope.Cost // by runs that are; what is unknown counts as it was reserved
	Unknown  int           // of how many of them that is so
}

// A Family is what the runs of a task and of all tasks below it have spent, and
// what is reserved for those that are not over.
type Family struct {
	Spent    envelope.Cost
	Reserved envelope.Cost
}

// Most is as much as is counted of what one run spends or may spend. An agent
// can claim any number, and sums of many have to stay numbers.
const Most = 1 << 40
