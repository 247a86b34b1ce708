package task

import (
	"slices"
	"time"

	"mailboxd/envelope"
)

// Terms are the conditions of a task's admission: the limits of its run, and the steps
// after it. They are stored with the run, so later changes of the rules do not affect it.
type Terms struct {
	Tools    []string          `json:"tools,omitzero"`    // permitted tools (AINL-47); nil: not specified
	Deadline time.Time         `json:"deadline,omitzero"` // when it must have ended; zero: no limit
	Timeout  time.Duration     `json:"timeout,omitzero"`  // for the whole run, beside the agent's own; 0: no limit
	Budget   envelope.Budget   `json:"budget,omitzero"`   // for the task over all its runs (AINL-46)
	Expected envelope.Budget   `json:"expected,omitzero"` // what the task should spend, if budgets only warn
	Accounts []Account         `json:"accounts,omitzero"` // that its spending is also charged to
	Approval envelope.Approval `json:"approval,omitzero"` // when a person must approve (AINL-48)
	Approver string            `json:"approver,omitzero"` // the only permitted approver (AINL-49); "" for any
	Proof    ProofLevel        `json:"proof,omitzero"`    // the least proof that an approval needs
	Levels   envelope.Levels   `json:"levels,omitzero"`   // which component enforces which control
	Calls    *CallRules        `json:"calls,omitzero"`    // which calls of tools are allowed; nil: the agent doesn't ask
}

// An Account is a daily budget that many tasks share.
type Account struct {
	Owner string          `json:"owner"`        // "requester:planner.agent", "agent:openclaw.monitor"
	Limit envelope.Budget `json:"limit"`        // of one day, in UTC
	Day   string          `json:"day,omitzero"` // as Day returns it; "" before a run begins
}

// Day returns the name of a day in UTC, as accounts use it.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// DailyAccounts are the accounts of a run beside those of its terms: one for its requester
// and one for its agent.
func DailyAccounts(t Task, r Run) (more []Account) {
	for _, owner := range []string{"requester:" + t.Requester, "agent:" + t.Agent} {
		if !slices.ContainsFunc(r.Terms.Accounts, func(a Account) bool { return a.Owner == owner }) {
			more = append(more, Account{Owner: owner, Day: Day(r.Intent)})
		}
	}
	return more
}

// A Balance is the spending of an account.
type Balance struct {
	Account
	Reserved envelope.Cost // for runs that have not ended
	Spent    envelope.Cost // by runs that have ended; a run with unknown spending counts with its reservation
	Unknown  int           // number of runs with unknown spending
}

// A TreeCost is the spending of a task and its descendants, and the reservations of their
// open runs.
type TreeCost struct {
	Spent    envelope.Cost
	Reserved envelope.Cost
}

// MaxAmount is the largest spending that is counted for one run. Agents can report any
// number, and sums must not overflow.
const MaxAmount = 1 << 40
