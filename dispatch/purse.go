package dispatch

import (
	"fmt"
	"strconv"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A unit is something of which a budget says how much.
type unit struct {
	name  string
	limit func(*envelope.Budget) **int64
	sum   func(*envelope.Cost) *int64
}

var units = []unit{
	{"tokens", func(b *envelope.Budget) **int64 { return &b.Tokens }, func(c *envelope.Cost) *int64 { return &c.Tokens }},
	{"US cents", func(b *envelope.Budget) **int64 { return &b.USDCents }, func(c *envelope.Cost) *int64 { return &c.USDCents }},
}

// A purse is something that the spending of a run has to fit into.
type purse struct {
	name     string          // what people call it
	key      string          // what who waits for it waits for
	account  task.Account    // which one it is; a zero one is not an account, but a task's own
	limit    envelope.Budget // without one it has room for anything
	spent    envelope.Cost
	reserved envelope.Cost // for others, who may not spend it all
}

// take returns how much of a unit there is for a run that needs so much, or
// whatever there is: no more than that, or why it has to do without. A limit
// of zero has room for who spends nothing.
func (p purse) take(u unit, need *int64) (left *int64, short *shortage) {
	limit := *u.limit(&p.limit)
	if limit == nil {
		return nil, nil
	}
	spent, reserved := *u.sum(&p.spent), *u.sum(&p.reserved)
	least := min(*limit, 1)
	if need != nil {
		least = *need
	}
	n := max(0, min(*limit-spent-reserved, task.MaxAmount))
	switch {
	case *limit-spent < least || spent > *limit:
		return nil, &shortage{purse: p, unit: u, need: need, reason: p.state(u, spent, *limit, need)}
	case n < least:
		reason := fmt.Sprintf("%s, and %d are reserved by others", p.state(u, spent, *limit, need), reserved)
		return nil, &shortage{purse: p, unit: u, need: need, waits: true, reason: reason}
	}
	return &n, nil
}

// state puts into words where a purse stands.
func (p purse) state(u unit, spent, limit int64, need *int64) string {
	words := fmt.Sprintf("%s has spent %d of %d %s", p.name, spent, limit, u.name)
	if p.account.Day != "" {
		words += " of " + p.account.Day
	}
	if need != nil && spent < limit {
		words += fmt.Sprintf(", and the task may spend %d", *need)
	}
	return words
}

func taskKey(seq int64) string { return "task:" + strconv.FormatInt(seq, 10) }

func accountKey(a task.Account) string { return a.Day + " " + a.Owner }

// smaller returns the smaller of two limits; nil is none.
func smaller(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
