package task

import (
	"cmp"
	"time"

	"mailboxd/envelope"
)

// A Task is the record of one revision of a task, without its request and its result. Times
// are in UTC, to the microsecond.
type Task struct {
	Seq      int64 // the order of acceptance; set by the ledger
	ID       envelope.ID
	Revision int              // 1 for the first content of the id
	Latest   bool             // no later revision exists; set by the ledger
	Hash     string           // envelope.Task.Hash of the content
	Dialect  envelope.Dialect // of the line

	State   State
	Attempt int       // the number of its latest run; 0 before the first
	Reasons []Reason  // why it is held
	Until   time.Time // the end of the hold or the lease; zero: none
	Due     time.Time // when it is looked at again, as the core says; zero: at no time

	Agent     string
	Requester string
	Type      string
	Deadline  time.Time // zero: none
	Received  time.Time
	Finished  time.Time // when it became Done; zero before

	File   string // the task file, relative to the root
	Offset int64  // of its line in File

	Status    envelope.Status // of the result; "" before
	Kind      envelope.Kind   // of the failure; "" for none
	ResultSum string          // hex SHA-256 of the result; "" for none
	Put       bool            // the result file is in place, or there is none
	Delivered bool            // all callbacks are made, or there are none
	Replaces  bool            // the earlier revision's result still has to move to the history

	Parent int64 // the Seq of the task whose run requested this one; 0: none (AINL-01)
	Depth  int   // the number of its ancestors

	Priority int // of the tasks that wait, the highest starts first
}

// A Position is where a task is in the order in which tasks start.
type Position struct {
	Seq      int64
	Priority int
}

// Compare is negative if p comes before other: the highest priority first, then the oldest.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(other.Priority, p.Priority), cmp.Compare(p.Seq, other.Seq))
}

// WaitsForBudget reports whether a task is held only until other runs leave some budget.
func (t Task) WaitsForBudget() bool {
	return t.State == Held && len(t.Reasons) == 1 && t.Reasons[0].EndsWithBudget(t.Until, t.Deadline)
}

// InBackoff reports whether a task is held only for the pause before its next attempt.
func (t Task) InBackoff() bool {
	return t.State == Held && len(t.Reasons) == 1 && t.Reasons[0] == Capacity && !t.WaitsForBudget()
}

// LacksCallback reports whether the result of a task is in place, but a callback for it
// failed.
func (t Task) LacksCallback() bool { return t.State == Done && t.Put && !t.Delivered }

// ClaimedAt reports whether a program has a lease on a waiting task at a time.
func (t Task) ClaimedAt(now time.Time) bool {
	return t.State == Waiting && !t.Until.IsZero() && now.Before(t.Until)
}

// A Child is a task that belongs to a parent.
type Child struct {
	Task
	Tie envelope.Tie
}

// A Change moves a task to a state. Reasons, Until and Due replace those of the task; any other
// zero field keeps the task's value.
type Change struct {
	To      State
	Attempt int       // the next attempt
	Reasons []Reason  // the hold reasons
	Until   time.Time // the end of the hold or the lease
	Due     time.Time // when it is looked at again; the core sets it
	Waits   []Wait    // what wakes it; those of the task stay as long as their reasons

	Agent  string          // the chosen agent
	Status envelope.Status // the final status
	Kind   envelope.Kind   // of the failure
	Result []byte          // the result file
}

// A Delivery is the record of a task that its agent fetches. The task is Waiting, and
// claimed until its Until.
type Delivery struct {
	Appended time.Time // when its line was in the inbox file; zero: unknown
	Claimed  time.Time // the time of the latest claim; zero: never
	Lease    string    // the token of the latest claim; "" for none
}
