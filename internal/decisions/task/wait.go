package task

import (
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
)

// A Wait says what wakes a held task, beside its time and a person: a change of what its Key
// names. The task is judged then. A task has at most one for each of its reasons. A task that waited
// for budget keeps its Wait in the queue, and so its place before others, until its run begins.
type Wait struct {
	Reason Reason
	Key    Key
	Needs  string // how much of a budget, in words of the core; "": unknown
}

// Keyed says how long a task has a Wait for one of its reasons.
type Keyed int

const (
	NeverKeyed  Keyed = iota // it has none
	WhileHeld                // as long as it is held for the reason
	UntilItRuns              // also while it is queued after that, so that it keeps its place before others
)

// A Waiter is a task with one of its Waits.
type Waiter struct {
	Task  int64
	State State // Held, or Queued
	Wait
}

// A Look says when a task is looked at again.
type Look struct {
	Task int64
	At   time.Time
}

// A Key names what a held task waits for. The zero value names nothing.
type Key string

// BudgetKeys is what the key of each budget begins with.
const BudgetKeys = "budget:"

const (
	afterPrefix   = "after:"
	accountPrefix = BudgetKeys + "account:"
)

// AfterKey names the end of a task.
func AfterKey(id envelope.ID) Key { return Key(afterPrefix + string(id)) }

// Task returns the task whose end a key names, and whether it names one.
func (k Key) Task() (envelope.ID, bool) {
	id, ok := strings.CutPrefix(string(k), afterPrefix)
	return envelope.ID(id), ok
}

// BudgetKey names the budget of a task and its descendants.
func BudgetKey(seq int64) Key { return Key(BudgetKeys + "task:" + strconv.FormatInt(seq, 10)) }

// AccountKey names an account on a day.
func AccountKey(owner, day string) Key { return Key(accountPrefix + day + ":" + owner) }

// Key names the account.
func (a Account) Key() Key { return AccountKey(a.Owner, a.Day) }

// Account returns the account that a key names, and whether it names one.
func (k Key) Account() (owner, day string, names bool) {
	rest, names := strings.CutPrefix(string(k), accountPrefix)
	day, owner, _ = strings.Cut(rest, ":")
	return owner, day, names
}
