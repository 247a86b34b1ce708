package core

import (
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A Unit is what a budget counts.
type Unit struct {
	name  string
	limit func(*envelope.Budget) **int64
	sum   func(*envelope.Cost) *int64
}

var units = []Unit{
	{"tokens", func(b *envelope.Budget) **int64 { return &b.Tokens }, func(c *envelope.Cost) *int64 { return &c.Tokens }},
	{"US cents", func(b *envelope.Budget) **int64 { return &b.USDCents }, func(c *envelope.Cost) *int64 { return &c.USDCents }},
}

// Overspent says what of a cost is more than a budget; "" for nothing.
func Overspent(budget envelope.Budget, spent envelope.Cost) string {
	for _, u := range units {
		most, used := *u.limit(&budget), *u.sum(&spent)
		if most != nil && used > *most {
			return fmt.Sprintf("the agent used %d %s of %d", used, u.name, *most)
		}
	}
	return ""
}

// A LimitKey names a limit: that of a task and those below it, or that of an account on
// a day.
type LimitKey struct {
	Task       int64
	Owner, Day string
}

// KeyOf returns the key of an account.
func KeyOf(a task.Account) LimitKey { return LimitKey{Owner: a.Owner, Day: a.Day} }

// A Limit is something that the spending of a run has to fit into.
type Limit struct {
	Key      LimitKey
	name     string          // for people
	budget   envelope.Budget // without an amount there is room for anything
	spent    envelope.Cost
	reserved envelope.Cost // for other runs, which may spend less
}

// A Shortfall says why a run can't begin: a limit has too little room for it. It is the
// answer to Intend.
type Shortfall struct {
	Limit  Limit
	Unit   Unit
	Need   *int64 // how much the run needs; nil: something
	Waits  bool   // what other runs leave of their reservations may be enough
	Reason string
}

// Error returns the reason.
func (s *Shortfall) Error() string { return s.Reason }

// Lasts reports whether the run still has to wait when the account that is short has a
// balance.
func (s *Shortfall) Lasts(now task.Balance) bool {
	l := s.Limit
	l.spent, l.reserved = now.Spent, now.Reserved
	_, still := l.room(s.Unit, s.Need)
	return still != nil && still.Waits
}

// room returns how much of a unit a run may spend that needs so much, or something; nil
// is anything. A limit of zero has room for a run that spends nothing.
func (l Limit) room(u Unit, need *int64) (left *int64, short *Shortfall) {
	limit := *u.limit(&l.budget)
	if limit == nil {
		return nil, nil
	}
	spent, reserved := *u.sum(&l.spent), *u.sum(&l.reserved)
	least := min(*limit, 1)
	if need != nil {
		least = *need
	}
	n := max(0, min(*limit-spent-reserved, task.MaxAmount))
	ends := *limit-spent < least || spent > *limit
	if n >= least && !ends {
		return &n, nil
	}
	reason := l.state(u, need)
	if !ends {
		reason += fmt.Sprintf(", and %d are reserved by others", reserved)
	}
	return nil, &Shortfall{Limit: l, Unit: u, Need: need, Waits: !ends, Reason: reason}
}

// state says in words how much of a limit is spent.
func (l Limit) state(u Unit, need *int64) string {
	spent, limit := *u.sum(&l.spent), **u.limit(&l.budget)
	words := fmt.Sprintf("%s has spent %d of %d %s", l.name, spent, limit, u.name)
	if l.Key.Day != "" {
		words += " of " + l.Key.Day
	}
	if need != nil && spent < limit {
		words += fmt.Sprintf(", and the task may spend %d", *need)
	}
	return words
}
