package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Unit is something that a budget counts, such as tokens.
type Unit struct {
	name  string
	limit func(*envelope.Budget) **int64
	sum   func(*envelope.Cost) *int64
}

var units = []Unit{
	{"tokens", func(b *envelope.Budget) **int64 { return &b.Tokens }, func(c *envelope.Cost) *int64 { return &c.Tokens }},
	{"US cents", func(b *envelope.Budget) **int64 { return &b.USDCents }, func(c *envelope.Cost) *int64 { return &c.USDCents }},
}

// Overspent says how a cost exceeds a budget; "" if it doesn't.
func Overspent(budget envelope.Budget, spent envelope.Cost) string {
	for _, u := range units {
		most, used := *u.limit(&budget), *u.sum(&spent)
		if most != nil && used > *most {
			return fmt.Sprintf("the agent used %d %s of %d", used, u.name, *most)
		}
	}
	return ""
}

// UsedUp says that nothing is left of the limit of an account; "" if something is.
func UsedUp(limit envelope.Budget, b task.Balance) string {
	for _, u := range units {
		most, used := *u.limit(&limit), *u.sum(&b.Spent)+*u.sum(&b.Reserved)
		if most != nil && used >= *most {
			return fmt.Sprintf("has spent or reserved %d of %d %s of the day", used, *most, u.name)
		}
	}
	return ""
}

// A Limit is a limit on the spending of runs.
type Limit struct {
	Key      task.Key
	name     string          // for messages
	budget   envelope.Budget // an amount of nil is unlimited
	spent    envelope.Cost
	reserved envelope.Cost // for other runs, which may spend less
}

// A Shortfall says that a limit has too little left for a run. Intend returns it as an
// error.
type Shortfall struct {
	Limit  Limit
	Unit   Unit
	Need   *int64 // the amount that the run needs; nil: any amount
	Waits  bool   // unspent reservations of other runs may be enough
	Reason string
}

// Error returns the reason.
func (s *Shortfall) Error() string { return s.Reason }

// Wait returns what wakes a task that waits for the limit. Waits is true.
func (s *Shortfall) Wait() task.Wait {
	need := min(**s.Unit.limit(&s.Limit.budget), 1)
	if s.Need != nil {
		need = *s.Need
	}
	return task.Wait{Reason: task.Capacity, Key: s.Limit.Key, Needs: fmt.Sprintf("%d of %d %s", need, **s.Unit.limit(&s.Limit.budget), s.Unit.name)}
}

// StillShort reports whether an account has too little for a task that waits for it, as its Needs say.
func StillShort(w task.Wait, now task.Balance) bool {
	amount, rest, _ := strings.Cut(w.Needs, " of ")
	most, name, _ := strings.Cut(rest, " ")
	need, err1 := strconv.ParseInt(amount, 10, 64)
	limit, err2 := strconv.ParseInt(most, 10, 64)
	at := slices.IndexFunc(units, func(u Unit) bool { return u.name == name })
	if at < 0 || err1 != nil || err2 != nil {
		return false
	}
	l := Limit{spent: now.Spent, reserved: now.Reserved}
	*units[at].limit(&l.budget) = &limit
	_, still := l.room(units[at], &need)
	return still != nil && still.Waits
}

// room returns how much of a unit is left for a run; nil is unlimited. The run needs the
// amount need; nil is any amount. A limit of zero has room for a run that spends nothing.
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

// state says how much of a limit is spent.
func (l Limit) state(u Unit, need *int64) string {
	spent, limit := *u.sum(&l.spent), **u.limit(&l.budget)
	words := fmt.Sprintf("%s has spent %d of %d %s", l.name, spent, limit, u.name)
	if _, day, ofAccount := l.Key.Account(); ofAccount {
		words += " of " + day
	}
	if need != nil && spent < limit {
		words += fmt.Sprintf(", and the task may spend %d", *need)
	}
	return words
}
