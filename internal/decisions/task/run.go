package task

import (
	"time"

	"mailboxd/envelope"
)

// A Run is one attempt of an agent at a task. Times are in UTC, to the microsecond.
type Run struct {
	Task    int64     // the task's Seq
	Attempt int       // 1 for the first
	ID      string    // MAILBOX_RUN_ID
	Intent  time.Time // when the start was decided; durable before a process is requested

	PID      int    // 0 before the start
	PIDStart uint64 // start time in clock ticks since boot, because PIDs are reused
	Boot     string // runner.Evidence of its directory when the start was decided; once the process is known, the boot of PIDStart

	Started  time.Time // zero: no process was started
	Finished time.Time // zero: still running
	ExitCode int
	Signal   string // that ended it; "" for none
	Cause    Cause  // "" if it ended by itself
	Tokens   *int64 // nil: unknown, not 0
	USDCents *int64

	At Assignment // the runner that has it; zero: this machine

	Terms Terms // the terms of its admission

	Reserved envelope.Budget // what it may spend; nil amounts are unlimited
	Lender   RunName         // the run that lends this reservation; zero: none
	Settled  bool            // it has ended and its spending is counted
}

// MayHaveSpent reports whether a run that has ended may have spent something.
func (r Run) MayHaveSpent() bool {
	return !r.Started.IsZero() || r.Cause == CauseLost || r.Tokens != nil || r.USDCents != nil
}

// A RunName identifies a run. The zero value is none.
type RunName struct {
	Task    int64
	Attempt int
}

// A LateAnswer is an answer of a runner that came after the end of its run. It changes nothing.
type LateAnswer struct {
	Run     RunName
	At      Assignment
	Why     string          // why it came too late, for people
	File    string          // where it is kept for review; "": nowhere
	Status  envelope.Status // as it says; "": it can't be read
	Summary string          // the same
	Left    []string        // what of it isn't there, and why, for people
}

// An Assignment says which runner has a run. The zero value is a run on this machine.
type Assignment struct {
	Runner      string
	Incarnation string // of the runner's journal, so that one that was lost or rolled back is known
	Token       string // of the run; no other run has it
}

// IsRemote reports whether the run is on another machine.
func (a Assignment) IsRemote() bool { return a.Token != "" }
