package task

import (
	"time"

	"mailboxd/envelope"
)

// A Run is one attempt to have an agent do a task. Times are in UTC, to the
// microsecond.
type Run struct {
	Task    int64     // the task's Seq
	Attempt int       // 1 for the first
	ID      string    // MAILBOX_RUN_ID
	Intent  time.Time // when it was decided, which is durable before a process is asked for

	PID      int    // 0 until there is one
	PIDStart uint64 // clock ticks from boot to its start, as an id alone is used again
	Boot     string // runner.Evidence of its directory as it was decided; once its process is known, the boot from which those ticks count

	Started  time.Time // zero when no process was started
	Finished time.Time // zero until it has ended
	ExitCode int
	Signal   string // what ended it; "" for none
	Cause    Cause  // "" when it ended by itself
	Tokens   *int64 // nil: unknown, which is not 0
	USDCents *int64

	Terms Terms // what it was admitted with

	Reserved envelope.Budget // what it may spend; without a limit: anything
	Lender   RunName         // the run of whose reservation that was part; zero: none
	Settled  bool            // it is over, and its spending counted
}

// MayHaveSpent reports whether a run that is over may have spent something.
func (r Run) MayHaveSpent() bool {
	return !r.Started.IsZero() || r.Cause == CauseLost || r.Tokens != nil || r.USDCents != nil
}

// A RunName names a run. The zero value is none.
type RunName struct {
	Task    int64
	Attempt int
}
