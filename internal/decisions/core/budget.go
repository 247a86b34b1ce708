package core

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Spending holds the amounts spent and reserved in all limits of a run, before the run
// begins. The zero value stands for a run without a limit.
type Spending struct {
	Own       task.TreeCost             // of the task, if it has a budget
	Ancestors []Ancestor                // nearest first, up to and including one that Lends
	Balances  map[task.Key]task.Balance // of the accounts that Accounts returns
}

// An Ancestor is a task above another task.
type Ancestor struct {
	Task     task.Task
	Run      task.Run      // its latest run; zero: none
	Tree     task.TreeCost // of the task
	Reported envelope.Cost // spending that the run has reported so far
}

// Lends reports whether runs that an ancestor's run requested take their reservations from
// its reservation. The run gets back what they don't spend. Its reservation is already
// counted in the limits above it.
func (a *Ancestor) Lends() bool {
	return (a.Task.State == task.Running || a.Task.State == task.Waiting) && a.Run.Attempt > 0 && !a.Run.Settled
}

// limit returns the limit of the ancestor's budget, or of its run's reservation if it
// lends.
func (a *Ancestor) limit() Limit {
	l := Limit{
		Key: task.BudgetKey(a.Task.Seq), name: "its parent " + string(a.Task.ID),
		budget: a.Run.Terms.Budget, spent: a.Tree.Spent, reserved: a.Tree.Reserved,
	}
	if !a.Lends() {
		return l
	}
	l.budget = envelope.Budget{}
	for _, u := range units {
		if held := *u.limit(&a.Run.Reserved); held != nil {
			all := *u.sum(&l.spent) + *u.sum(&l.reserved)
			*u.limit(&l.budget) = &all
			*u.sum(&l.spent) += *u.sum(&a.Reported)
			*u.sum(&l.reserved) -= *held
		}
	}
	return l
}

// Accounts returns the accounts that a run is charged to, one for each owner: accounts of
// its ancestors and of its own terms. A borrowed amount is charged to the day on which the
// lender began.
func (s *Spending) Accounts(run task.Run) []task.Account {
	today := task.Day(run.Intent)
	var all []task.Account
	find := func(owner string) int {
		return slices.IndexFunc(all, func(have task.Account) bool { return have.Owner == owner })
	}
	for _, ancestor := range s.Ancestors {
		if ancestor.Run.Attempt == 0 {
			continue
		}
		for _, a := range slices.Concat(ancestor.Run.Terms.Accounts, task.DailyAccounts(ancestor.Task, ancestor.Run)) {
			at, lends := find(a.Owner), ancestor.Lends()
			if !lends {
				a.Day = today
			}
			switch {
			case at < 0:
				all = append(all, a)
			case lends:
				a.Limit = a.Limit.Least(all[at].Limit)
				all[at] = a
			}
		}
	}
	for _, a := range run.Terms.Accounts {
		if at := find(a.Owner); at >= 0 {
			all[at].Limit = all[at].Limit.Least(a.Limit)
			continue
		}
		a.Day = today
		all = append(all, a)
	}
	return all
}

// reserve returns the run with the amounts that it may spend (AINL-46). The amounts fit
// into the budget of its task over all attempts and children, and into the accounts. A
// Shortfall says that the run can't begin.
func (s *Spending) reserve(run task.Run) (task.Run, *Shortfall) {
	var lender task.Run
	if last := len(s.Ancestors) - 1; last >= 0 && s.Ancestors[last].Lends() {
		lender = s.Ancestors[last].Run
		run.Lender = task.RunName{Task: lender.Task, Attempt: lender.Attempt}
	}
	run.Terms.Accounts = s.Accounts(run)
	var short *Shortfall
	for _, u := range units {
		amount, lacks := s.amount(u, run, lender)
		if lacks != nil && (short == nil || short.Waits) {
			short = lacks
		}
		*u.limit(&run.Reserved) = amount
	}
	return run, short
}

// amount returns how much of a unit a run may spend; nil: any amount. A task with a budget
// needs the whole rest of its budget to be free in each account. A task without a budget
// takes the rest of its accounts.
func (s *Spending) amount(u Unit, run, lender task.Run) (amount *int64, short *Shortfall) {
	take := func(l Limit, need *int64) {
		left, lacks := l.room(u, need)
		if lacks != nil && (short == nil || short.Waits && !lacks.Waits) { // waiting doesn't help against this one
			short = lacks
		}
		if left != nil && (amount == nil || *left < *amount) {
			amount = left
		}
	}
	own := run.Terms.Budget
	take(Limit{Key: task.BudgetKey(run.Task), name: "the task", budget: own, spent: s.Own.Spent, reserved: s.Own.Reserved}, nil)
	for _, a := range s.Ancestors {
		take(a.limit(), nil)
	}
	need := amount
	if *u.limit(&own) == nil {
		need = nil
	}
	for _, a := range run.Terms.Accounts {
		if !inReservation(u, a, lender) {
			b := s.Balances[a.Key()]
			take(Limit{Key: a.Key(), name: a.Owner, budget: a.Limit, spent: b.Spent, reserved: b.Reserved}, need)
		}
	}
	if short != nil {
		return nil, short
	}
	return amount, nil
}

// inReservation reports whether the lender's reservation already includes the account.
func inReservation(u Unit, a task.Account, lender task.Run) bool {
	return *u.limit(&lender.Reserved) != nil &&
		slices.ContainsFunc(lender.Terms.Accounts, func(have task.Account) bool { return have.Key() == a.Key() })
}
