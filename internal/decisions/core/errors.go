package core

import (
	"errors"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Errors of commands.
var (
	// ErrStale says that the task has changed since the caller gathered the facts.
	ErrStale = errors.New("the task has changed meanwhile")
	// ErrTooLate says that the time for a decision has passed.
	ErrTooLate = errors.New("the time to decide about it is over")
	// ErrChanged says that the approver saw other content than a run would have now.
	ErrChanged = errors.New("what would be run has changed since it was asked about; it is asked about again")
	// ErrFollower says that a task gets the outcome of another task, so it has no run of its own.
	ErrFollower = errors.New("another task carries out the same command")

	// ErrStillRefused says that policy still refuses the task.
	ErrStillRefused = errors.New("it is still refused")
	// ErrLeased says that another program has claimed the task.
	ErrLeased = errors.New("somebody else has claimed it")
	// ErrLeaseOver says that the lease has ended.
	ErrLeaseOver = errors.New("that lease is over; claim it again")
)

// A StateError says that the state of a task doesn't allow a command.
type StateError struct {
	State   task.State
	Status  envelope.Status // of a task that is Done
	Reasons []task.Reason   // of a task that is Held
}

// Error names the state and its reasons.
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

// StateErrorOf returns the StateError of a task.
func StateErrorOf(t task.Task) error {
	e := &StateError{State: t.State, Reasons: t.Reasons}
	if t.State == task.Done {
		e.Status = t.Status // a task in review has a status already, but isn't finished
	}
	return e
}

// A ChangedError is an ErrChanged that says what has changed.
type ChangedError struct{ Reason string }

// Error returns the reason, and says that the question is asked again.
func (e *ChangedError) Error() string { return e.Reason + "; it is asked about again" }

// Is reports whether target is ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// A ForbiddenError says why a caller may not give a command.
type ForbiddenError struct{ Reason string }

// Error returns the reason.
func (e *ForbiddenError) Error() string { return e.Reason }
