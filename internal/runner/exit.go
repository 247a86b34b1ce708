package runner

import (
	"cmp"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// Whole reports whether the run directory dir still has as much of what the
// process said as it had when it exited: its files are not synced, so a machine that
// went down may have kept exit.json and lost part of them. The answer is the file
// Spec.Answer was, or "". An error is Passing, and nothing is known then.
func Whole(e task.Exit, dir, answer string) (bool, error) {
	sum, err := said(dir, answer)
	return sum >= e.OutputBytes, err
}

// said counts the bytes in stdout and in the answer, if that is a file.
func said(dir, answer string) (sum int64, failed error) {
	for _, path := range [2]string{inDir(dir, StdoutFile), answer} {
		if path == "" {
			continue
		}
		var file unix.Stat_t
		err := cmp.Or(fault.Read("size"), unix.Lstat(path, &file))
		switch {
		case Passing(err):
			failed = &fs.PathError{Op: "lstat", Path: path, Err: err}
		case err == nil && file.Mode&unix.S_IFMT == unix.S_IFREG:
			sum += file.Size
		}
	}
	return sum, failed
}

// ReadExit reads how the run in dir ended. It reports false when the run has
// not ended, or nobody was there to write down how.
func ReadExit(dir string) (task.Exit, bool, error) {
	var e task.Exit
	ok, err := readRecord(dir, ExitFile, &e)
	return e, ok, err
}

// status takes apart how a process ended.
func status(w unix.WaitStatus) (code int, signal string) {
	if !w.Signaled() {
		return w.ExitStatus(), ""
	}
	name := unix.SignalName(w.Signal())
	if name == "" {
		name = "signal"
	}
	return -1, fmt.Sprintf("%s (%d)", name, int(w.Signal()))
}
