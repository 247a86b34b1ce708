package core

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// Spending is what is spent and reserved of all that a run has to fit into, before the
// run begins. The zero value is that of a run without any limit.
type Spending struct {
	Own      task.TreeCost             // of the task, if it has a budget
	Above    []Ancestor                // the tasks above it, the nearest first, up to one that Lends
	Balances map[LimitKey]task.Balance // of the accounts that Accounts returns
}

// An Ancestor is a task above another one.
type Ancestor struct {
	Task task.Task
	Run  task.Run      // its last one; zero: none
	Tree task.TreeCost // of the task
	Said envelope.Cost // what the run has said so far that it spent
}

// Lends reports whether the runs that an ancestor's run asked for have their reservations
// from that run: it can spend so much less, and gets back what they leave. What it has is
// part of the limits above it already.
func (a *Ancestor) Lends() bool {
	return (a.Task.State == task.Running || a.Task.State == task.Waiting) && a.Run.Attempt > 0 && !a.Run.Settled
}

// limit is what an ancestor's budget has left, or what its run has left if it lends.
func (a *Ancestor) limit() Limit {
	l := Limit{
		Key: LimitKey{Task: a.Task.Seq}, name: "its parent " + string(a.Task.ID),
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
			*u.sum(&l.spent) += *u.sum(&a.Said)
			*u.sum(&l.reserved) -= *held
		}
	}
	return l
}

// Accounts returns the accounts that a run counts for, one for each owner: those of the
// tasks above it, and those of its own terms. What it borrows counts on the day on which
// its lender began.
func (s *Spending) Accounts(run task.Run) []task.Account {
	today := task.Day(run.Intent)
	var all []task.Account
	find := func(owner string) int {
		return slices.IndexFunc(all, func(have task.Account) bool { return have.Owner == owner })
	}
	for _, above := range s.Above {
		if above.Run.Attempt == 0 {
			continue
		}
		for _, a := range slices.Concat(above.Run.Terms.Accounts, task.DailyAccounts(above.Task, above.Run)) {
			at, lends := find(a.Owner), above.Lends()
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

// reserve adds to a run that is about to begin what it may spend (AINL-46), or says why
// it can't begin: what is left of its task's budget over all attempts and children, and
// of the accounts it counts for.
func (s *Spending) reserve(run task.Run) (task.Run, *Shortfall) {
	var lender task.Run
	if last := len(s.Above) - 1; last >= 0 && s.Above[last].Lends() {
		lender = s.Above[last].Run
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

// amount is what a run may spend of a unit; nil: anything. A task that has a budget of
// its own needs all that is left of it to fit into its accounts; one that has none takes
// what is left of them.
func (s *Spending) amount(u Unit, run, lender task.Run) (amount *int64, short *Shortfall) {
	take := func(l Limit, need *int64) {
		left, lacks := l.room(u, need)
		if lacks != nil && (short == nil || short.Waits && !lacks.Waits) { // no waiting ends that one
			short = lacks
		}
		if left != nil && (amount == nil || *left < *amount) {
			amount = left
		}
	}
	own := run.Terms.Budget
	take(Limit{Key: LimitKey{Task: run.Task}, name: "the task", budget: own, spent: s.Own.Spent, reserved: s.Own.Reserved}, nil)
	for _, a := range s.Above {
		take(a.limit(), nil)
	}
	need := amount
	if *u.limit(&own) == nil {
		need = nil
	}
	for _, a := range run.Terms.Accounts {
		if !lent(u, a, lender) {
			b := s.Balances[KeyOf(a)]
			take(Limit{Key: KeyOf(a), name: a.Owner, budget: a.Limit, spent: b.Spent, reserved: b.Reserved}, need)
		}
	}
	if short != nil {
		return nil, short
	}
	return amount, nil
}

// lent reports whether a run gets what it may spend of an account out of what its lender
// has of that already.
func lent(u Unit, a task.Account, lender task.Run) bool {
	return *u.limit(&lender.Reserved) != nil &&
		slices.ContainsFunc(lender.Terms.Accounts, func(have task.Account) bool { return KeyOf(have) == KeyOf(a) })
}
