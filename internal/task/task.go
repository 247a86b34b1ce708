package task

import (
	"slices"
	"time"

	"mailboxd/envelope"
)

// A Task is what is remembered of one revision of one task, without the bodies of
// its request and its result. Times are in UTC, to the microsecond.
type Task struct {
	Seq      int64 // the order in which revisions were accepted; the ledger gives it
	ID       envelope.ID
	Revision int              // 1 for the first content that had the id
	Latest   bool             // no later revision of the id is there; the ledger sets it
	Hash     string           // envelope.Task.Hash: names the content
	Dialect  envelope.Dialect // of the line

	State   State
	Attempt int       // the number of the run it has or had; 0 before the first
	Reasons []Reason  // why it is held
	Until   time.Time // when the hold, or a lease, ends by itself; zero: it does not

	Agent     string
	Requester string
	Type      string
	Deadline  time.Time // zero: none
	Received  time.Time
	Finished  time.Time // when it became Done; zero before

	File   string // the task file of its line, relative to the root
	Offset int64  // where in it the line begins

	Status    envelope.Status // how it ended; "" before
	Kind      envelope.Kind   // what went wrong; "" for nothing
	ResultSum string          // hex SHA-256 of the result's bytes; "" for none
	Put       bool            // its result file is in place, or it has none
	Delivered bool            // its callbacks are done, or it has none
	Replaces  bool            // the earlier revision's result still has to go to the history

	Parent int64 // the Seq of the task whose run asked for this one; 0: none (AINL-01)
	Depth  int   // how many parents are above it
}

// WaitsForBudget reports whether a task is held until other runs leave something of
// a budget. Nobody knows when that is: it is held until its deadline, where a pause
// between two attempts has an end of its own.
func (t Task) WaitsForBudget() bool {
	return t.State == Held && slices.Equal(t.Reasons, []Reason{Capacity}) && t.Until.Equal(t.Deadline)
}

// LacksCallback reports whether the result of a task is in place and could not be
// delivered to its callback.
func (t Task) LacksCallback() bool { return t.State == Done && t.Put && !t.Delivered }

// ClaimedAt reports whether a program has a lease on a waiting task at an instant.
func (t Task) ClaimedAt(now time.Time) bool {
	return t.State == Waiting && !t.Until.IsZero() && now.Before(t.Until)
}

// A Child is a task that belongs to another one.
type Child struct {
	Task
	Tie envelope.Tie
}

// A Change is what becomes of a task that moves to another state. Reasons and Until
// become exactly what is set here; every other zero field leaves what was there.
type Change struct {
	To      State
	Attempt int       // the attempt that begins
	Reasons []Reason  // why it is held from now on
	Until   time.Time // when that ends by itself

	Agent  string          // who has it, when that was decided anew
	Status envelope.Status // how it ended
	Kind   envelope.Kind   // what went wrong
	Result []byte          // the bytes of its result file
}

// A Delivery is what is remembered of a task whose agent fetches it, beside the task
// itself: the task is Waiting, and claimed until its Until.
type Delivery struct {
	Appended time.Time // when its line was in the inbox file; zero: not known to be there
	Claimed  time.Time // when it was claimed last; zero: never
	Lease    string    // the token of the last claim; "" for none
}
