package runner

import (
	"errors"
	"slices"
	"syscall"
)

// An UnreadError says that the record of a run cannot be read now, for a reason
// that has nothing to do with the run. Await can be called again.
type UnreadError struct{ Err error }

func (e *UnreadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreadError) Unwrap() error { return e.Err }

// facts are the errors by which a system call says what is at a path. An agent
// can cause each of them in its run directory.
var facts = []syscall.Errno{
	syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
	syscall.EACCES, syscall.EPERM, syscall.ENXIO, syscall.ENODEV,
}

// Passing reports whether an error of a read is a failure of the machine, such
// as EMFILE, ENOMEM or EIO. Such an error says nothing about the file: the same
// read may succeed later. Errors that no system call returned are not passing.
func Passing(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(facts, errno)
}
