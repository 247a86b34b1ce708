package core

import (
	"errors"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// Why a command comes to nothing.
var (
	// ErrStale says that the task has changed since the facts of the command were
	// gathered.
	ErrStale = errors.New("the task has changed meanwhile")
	// ErrTooLate says that the time for a decision is over.
	ErrTooLate = errors.New("the time to decide about it is over")
	// ErrChanged says that an approver was asked about something else than what
	// would run now.
	ErrChanged = errors.New("what would be run has changed since it was asked about; it is asked about again")
	// ErrStillRefused says that policy refuses the task still.
	ErrStillRefused = errors.New("it is still refused")
	// ErrLeased says that another program has claimed the task.
	ErrLeased = errors.New("somebody else has claimed it")
	// ErrLeaseOver says that the lease has ended.
	ErrLeaseOver = errors.New("that lease is over; claim it again")
)

// A StateError says that a command isn't possible in the state of its task.
type StateError struct {
	State   task.State
	Status  envelope.Status // of a task that is Done
	Reasons []task.Reason   // of one that is Held
}

// Error names the state, and why the task is there.
func (e *StateError) Error() string {
	switch {
	case e.Status != "":
		return fmt.Sprintf("it is %s already (%s)", e.State, e.Status)
	case len(e.Reasons) > 0:
		words := make([]string, len(e.Reasons))
		for i, r := range e.Reasons {
			words[i] = string(r)
		}
		return fmt.Sprintf("it is %s (%s)", e.State, strings.Join(words, ", "))
	case e.State == task.Review:
		return "it is in review"
	}
	return fmt.Sprintf("it is %s", e.State)
}

// StateErrorOf is the StateError of a task as it is.
func StateErrorOf(t task.Task) error {
	e := &StateError{State: t.State, Reasons: t.Reasons}
	if t.State == task.Done {
		e.Status = t.Status // a task in review has it already, and isn't over
	}
	return e
}

// A ForbiddenError says why a caller may not do what it asked for.
type ForbiddenError struct{ Reason string }

// Error returns the reason.
func (e *ForbiddenError) Error() string { return e.Reason }
