package policy

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Controls on spending.

// budget: a task may spend the least of its request, the agent's class and the rest of the
// day (AINL-18, AINL-46). A limit that can't be metered must not look enforced.
func (q *question) budget() envelope.Level {
	class, _ := q.rules.Class(q.manifest.BudgetClass)
	limit, accounts := q.Budget.Least(class.Budget).Least(q.agent.Card.Budget), q.accounts()
	if !q.enforced() {
		q.verdict.Expected = limit
	} else {
		q.verdict.Budget, q.verdict.Accounts, q.verdict.Timeout = limit, accounts, class.Wall
	}
	switch {
	case limit == (envelope.Budget{}) && len(accounts) == 0:
		return notApplicable
	case q.agent.Metered && !(q.agent.Unpriced && inMoney(limit, accounts)):
		return envelope.LevelObserved
	case q.agent.AllowUnmetered:
	case q.agent.Metered:
		q.object(envelope.PolicyViolation, "budget_limit", fmt.Sprintf(
			"agent %q reports its tokens but no price, and the task has a budget in cents%s; allow_unmetered: true lets it take one",
			q.Agent, q.budgetOrigin(class)))
	default:
		q.object(envelope.PolicyViolation, "budget_limit", fmt.Sprintf(
			"agent %q does not report what it spends, and the task has a budget%s; output: envelope or allow_unmetered: true lets it take one",
			q.Agent, q.budgetOrigin(class)))
	}
	return envelope.LevelAdvisory
}

// inMoney reports whether a limit, or a daily one, is in cents.
func inMoney(limit envelope.Budget, accounts []task.Account) bool {
	return limit.USDCents != nil ||
		slices.ContainsFunc(accounts, func(a task.Account) bool { return a.Limit.USDCents != nil })
}

// budgetOrigin names the origin of a budget that the request doesn't set.
func (q *question) budgetOrigin(class Class) string {
	switch {
	case q.Budget != (envelope.Budget{}):
		return ""
	case class.Budget != (envelope.Budget{}):
		return fmt.Sprintf(" by its class %q", class.Name)
	case q.agent.Card.Budget != (envelope.Budget{}):
		return " by its card"
	}
	return " of the day"
}

// accounts returns the daily budgets that the task is charged to: the requester's, then the
// agent's.
func (q *question) accounts() []task.Account {
	var accounts []task.Account
	add := func(kind, id string, of func(DayBudget) string) {
		for _, name := range []string{id, "*"} {
			at := slices.IndexFunc(q.rules.DayBudgets, func(b DayBudget) bool { return of(b) == name })
			if at >= 0 && name != "" {
				accounts = append(accounts, task.Account{Owner: kind + ":" + id, Limit: q.rules.DayBudgets[at].Limit})
				return
			}
		}
	}
	add("requester", q.Requester, func(b DayBudget) string { return b.Requester })
	add("agent", q.Agent, func(b DayBudget) string { return b.Agent })
	return accounts
}
