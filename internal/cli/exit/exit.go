// Package exit has the exit codes of mailboxd, and errors that carry one.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes, on which scripts may rely.
const (
	Failed     = 1 // something did not work
	Usage      = 2 // the command line is wrong
	TaskFailed = 3 // the task ended in error, or was cancelled
	Rejected   = 4 // the task was rejected or denied
	Timeout    = 5 // the wait was too short
	NoTask     = 6 // there is no such task
	Down       = 7 // the daemon is not running

	NeedsPerson = 8 // the task waits for a person
)

// An Error ends the program with a code. It prints nothing when Err is nil.
type Error struct {
	Code int
	Err  error
}

// Error is the text of Err; "" without one.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// With formats an error with an exit code.
func With(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code of an error; 0 for one without a code.
func CodeOf(err error) int {
	if exit, ok := errors.AsType[*Error](err); ok {
		return exit.Code
	}
	return 0
}

// Worse returns the error with the higher exit code.
func Worse(a, b error) error {
	if CodeOf(a) >= CodeOf(b) {
		return a
	}
	return b
}
