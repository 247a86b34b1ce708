package dispatch

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A booking finds out what a run may spend (AINL-46): what is left of its
// task's budget over all attempts and children, and of the budgets of the day
// it counts for. One that another run asked for has it from that run, as long
// as that goes on: its parent can spend so much less, and has back what is left.
type booking struct {
	tx  *transaction
	row task.Task
	run *task.Run

	own       purse   // the task's; without a limit when it has none
	above     []purse // those of the tasks it is for
	lender    task.Run
	inherited []task.Account // of the tasks it is for
}

// reserve notes in a run that is about to begin what it may spend, or returns
// why it may not begin.
func (d *Dispatcher) reserve(tx *transaction, row task.Task, run *task.Run) (*shortage, error) {
	if row.Parent == 0 && run.Terms.Budget == (envelope.Budget{}) && len(run.Terms.Accounts) == 0 {
		return nil, nil // as most
	}
	b := booking{tx: tx, row: row, run: run}
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.climb(d.spentBy); err != nil {
		return nil, err
	}
	accounts, err := b.accounts()
	if err != nil {
		return nil, err
	}
	var short *shortage
	for _, u := range units {
		amount, lacks := b.amount(u, accounts)
		if lacks != nil && (short == nil || short.waits) {
			short = lacks
		}
		*u.limit(&run.Reserved) = amount
	}
	return short, nil
}

// open looks into the task's own purse.
func (b *booking) open() error {
	if b.run.Terms.Budget == (envelope.Budget{}) {
		return nil
	}
	f, err := b.tx.Family(b.row.Seq)
	b.own = purse{name: "the task", key: taskKey(b.row.Seq), limit: b.run.Terms.Budget, spent: f.Spent, reserved: f.Reserved}
	return err
}

// climb looks into the purses of the tasks above, up to one that runs, or waits
// for its agent: that one's reservation is part of those above it already.
func (b *booking) climb(metered func(seq int64) envelope.Cost) error {
	for seq := b.row.Parent; seq != 0; {
		parent, found, err := b.tx.Task(seq)
		if err != nil || !found {
			return err
		}
		last, ran, err := b.tx.LastRun(seq)
		if err != nil {
			return err
		}
		f, err := b.tx.Family(seq)
		if err != nil {
			return err
		}
		seq = parent.Parent
		if !ran {
			continue
		}
		p := purse{name: "its parent " + string(parent.ID), key: taskKey(parent.Seq), limit: last.Terms.Budget, spent: f.Spent, reserved: f.Reserved}
		lends := (parent.State == task.Running || parent.State == task.Waiting) && !last.Settled
		if lends {
			b.lend(&p, last, metered(parent.Seq))
			seq = 0
		}
		b.above = append(b.above, p)
		b.inherit(append(slices.Clone(last.Terms.Accounts), task.DailyAccounts(parent, last)...), lends)
	}
	return nil
}

// lend makes a run that goes on the lender, and its purse what it has: what
// it has spent itself is known only by what it said so far.
func (b *booking) lend(p *purse, run task.Run, said envelope.Cost) {
	b.lender, b.run.Lender = run, task.RunName{Task: run.Task, Attempt: run.Attempt}
	for _, u := range units {
		limit, held := u.limit(&p.limit), *u.limit(&run.Reserved)
		if *limit = nil; held == nil {
			continue
		}
		all := *u.sum(&p.spent) + *u.sum(&p.reserved)
		*limit = &all
		*u.sum(&p.spent) += *u.sum(&said)
		*u.sum(&p.reserved) -= *held
	}
}

// inherit counts the run for the accounts of those it is for too, once each.
// The lender's are of the day on which that began.
func (b *booking) inherit(accounts []task.Account, lent bool) {
	for _, a := range accounts {
		if !lent {
			a.Day = task.Day(b.run.Intent)
		}
		at := slices.IndexFunc(b.inherited, func(have task.Account) bool { return have.Owner == a.Owner })
		switch {
		case at < 0:
			b.inherited = append(b.inherited, a)
		case lent:
			b.inherited[at] = a
		}
	}
}

// accounts says which accounts the run counts for, from now on in its terms,
// and looks into them.
func (b *booking) accounts() (purses []purse, err error) {
	all := slices.Clone(b.inherited)
	for _, a := range b.run.Terms.Accounts {
		a.Day = task.Day(b.run.Intent)
		at := slices.IndexFunc(all, func(have task.Account) bool { return have.Owner == a.Owner })
		if at < 0 {
			all = append(all, a)
			continue
		}
		for _, u := range units {
			*u.limit(&all[at].Limit) = smaller(*u.limit(&all[at].Limit), *u.limit(&a.Limit))
		}
	}
	b.run.Terms.Accounts = all
	for _, a := range all {
		balance, err := b.tx.Balance(a.Owner, a.Day)
		if err != nil {
			return nil, err
		}
		purses = append(purses, purse{name: a.Owner, key: accountKey(a), account: a, limit: a.Limit, spent: balance.Spent, reserved: balance.Reserved})
	}
	return purses, nil
}

// amount is what the run may spend of a unit; nil: anything. A task that has a
// budget of its own needs all that is left of it to fit into its accounts; one
// that has none takes what is left of them.
func (b *booking) amount(u unit, accounts []purse) (amount *int64, short *shortage) {
	var lacks []*shortage
	take := func(p purse, need *int64) {
		left, lack := p.take(u, need)
		if lack != nil {
			lacks = append(lacks, lack)
		}
		amount = smaller(amount, left)
	}
	take(b.own, nil)
	for _, p := range b.above {
		take(p, nil)
	}
	need := amount
	if *u.limit(&b.own.limit) == nil {
		need = nil
	}
	for _, p := range accounts {
		if !b.lent(u, p.account) {
			take(p, need)
		}
	}
	if len(lacks) == 0 {
		return amount, nil
	}
	final := slices.IndexFunc(lacks, func(s *shortage) bool { return !s.waits })
	return nil, lacks[max(0, final)] // no waiting ends that one
}

// lent reports whether what the run gets comes out of what its lender has of
// an account already.
func (b *booking) lent(u unit, a task.Account) bool {
	return *u.limit(&b.lender.Reserved) != nil &&
		slices.ContainsFunc(b.lender.Terms.Accounts, func(have task.Account) bool { return have.Owner == a.Owner && have.Day == a.Day })
}

// spentBy is what the run of a task has said so far that it spent.
func (d *Dispatcher) spentBy(seq int64) (most envelope.Cost) {
	for _, r := range d.runs.of(seq) {
		most = r.meter.seen()
	}
	return most
}
