package ledger

import (
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// amounts are one number for each thing that is counted: tokens, US cents.
type amounts [2]int64

// limits are amounts that may be missing: no limit, or not known.
type limits [2]*int64

func limitsOf(b envelope.Budget) limits { return limits{b.Tokens, b.USDCents} }

// sum takes what is missing for zero.
func (l limits) sum() (a amounts) {
	for i, n := range l {
		if n != nil {
			a[i] = *n
		}
	}
	return a
}

func (a amounts) minus(b amounts) amounts { return amounts{a[0] - b[0], a[1] - b[1]} }

// countable bounds what an agent says.
func countable(n *int64) *int64 {
	if n == nil {
		return nil
	}
	within := max(0, min(*n, task.MaxAmount))
	return &within
}
