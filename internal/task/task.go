package task

import (
	"slices"
	"time"

	"mailboxd/envelope"
)

// A Task is what is remembered of one revision of one task, without the
// bodies: Raw and Result read those. Times are in UTC, to the microsecond.
type Task struct {
	Seq      int64 // the order in which revisions were accepted; Add gives it
	ID       envelope.ID
	Revision int              // 1 for the first content that had the id
	Latest   bool             // no later revision of the id is there; Add sets it
	Hash     string           // envelope.Task.Hash: names the content
	Dialect  envelope.Dialect // how the line said it

	State   State
	Attempt int       // the number of the run it has or had; 0 before the first
	Reasons []Reason  // why it is held
	Until   time.Time // when the hold ends by itself; zero: it does not

	Agent     string
	Requester string
	Type      string
	Deadline  time.Time // zero: none
	Received  time.Time
	Finished  time.Time // when it became Done; zero before

	File   string // which line it was: the task file, relative to the root
	Offset int64  // and where in it

	Status    envelope.Status // how it ended; "" before
	Kind      envelope.Kind   // what went wrong; "" for nothing
	ResultSum string          // hex SHA-256 of the result's bytes; "" for none
	Put       bool            // its result file is in place, or none is to be
	Delivered bool            // its callbacks are done, or there are none
	Replaces  bool            // the earlier revision's result still has to go to the history

	Parent int64 // the Seq of the task whose run asked for this one; 0: none (AINL-01)
	Depth  int   // how many parents are above it
}

// WaitsForBudget reports whether a task is held until others leave something of
// a budget. Nobody knows when that is: it is held until its deadline, where a
// pause between two attempts has an end of its own.
func (t Task) WaitsForBudget() bool {
	return t.State == Held && slices.Equal(t.Reasons, []Reason{Capacity}) && t.Until.Equal(t.Deadline)
}

// ClaimedAt reports whether somebody has a lease on a waiting task at an instant.
func (t Task) ClaimedAt(now time.Time) bool {
	return t.State == Waiting && !t.Until.IsZero() && now.Before(t.Until)
}

// A Child is a task that belongs to another one.
type Child struct {
	Task
	Tie envelope.Tie
}

// A Change is what Move makes of a task. Reasons and Until become exactly
// what is said here; every other zero field leaves what was there.
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

// A Delivery is what is remembered of a task whose agent fetches it, beside the
// task itself: that is Waiting, and claimed until its Until.
type Delivery struct {
	Appended time.Time // when its line was in the inbox file; zero: nobody knows that it is
	Claimed  time.Time // when it was claimed last; zero: never
	Lease    string    // what whoever claimed it last has to show; "" for nobody
}
