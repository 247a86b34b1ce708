package runner

import (
	"errors"
	"slices"
	"syscall"
)

// An UnreadError says that the record of a run can't be read now, for a reason outside the
// run. Await can be called again.
type UnreadError struct{ Err error }

func (e *UnreadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreadError) Unwrap() error { return e.Err }

// pathErrors are the errors about a path itself. An agent can cause each of them in its run
// directory.
var pathErrors = []syscall.Errno{
	syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
	syscall.EACCES, syscall.EPERM, syscall.ENXIO, syscall.ENODEV,
}

// Passing reports whether a read failed because of the machine, such as EMFILE, ENOMEM or
// EIO. Such an error says nothing about the file: a later read may succeed. Errors without
// an errno aren't passing.
func Passing(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(pathErrors, errno)
}
