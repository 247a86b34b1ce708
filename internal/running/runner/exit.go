package runner

import (
	"cmp"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// Whole reports whether a run directory still has all output that the process had written
// when it exited. The files aren't synced, so exit.json can survive a crash of the machine
// that loses a part of them. The answer is Spec.Answer, or "". After a Passing error,
// nothing is known.
func Whole(e task.Exit, dir, answer string) (bool, error) {
	sum, err := outputBytes(dir, answer)
	return sum >= e.OutputBytes, err
}

// outputBytes counts the bytes in stdout and in the answer, if that is a file.
func outputBytes(dir, answer string) (sum int64, failed error) {
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

// ReadExit reads how the run in dir ended. It returns false if the run hasn't ended, or its
// end wasn't recorded.
func ReadExit(dir string) (task.Exit, bool, error) {
	var e task.Exit
	ok, err := readRecord(dir, ExitFile, &e)
	return e, ok, err
}

// status decodes a wait status.
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
