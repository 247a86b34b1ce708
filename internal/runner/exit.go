package runner

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

// A Cause says why we ended a run. The zero value means that it ended by
// itself.
type Cause string

// The causes.
const (
	Timeout        Cause = "timeout"          // Spec.Timeout was over
	IdleTimeout    Cause = "idle_timeout"     // no sign of life for Spec.IdleTimeout
	ExitTimeout    Cause = "exit_timeout"     // answered, and did not exit for Spec.ExitTimeout
	Deadline       Cause = "deadline"         // Spec.Deadline was reached
	OutputTooLarge Cause = "output_too_large" // more than Spec.MaxOutput
	Interrupted    Cause = "interrupted"      // the context ended
	Lost           Cause = "lost"             // whoever hosted it was gone: nobody knows how it ended
)

// An Exit says how a run ended. It is also what exit.json holds, beside what
// meta.json says.
type Exit struct {
	Code      int           `json:"code"`                // -1 when a signal ended it
	Signal    string        `json:"signal,omitempty"`    // "SIGKILL (9)", or "" when it exited
	Cause     Cause         `json:"cause,omitempty"`     // why we ended it
	Reason    string        `json:"reason,omitempty"`    // the context's cause, when interrupted
	PID       int           `json:"pid"`                 // of the process, by now anybody's
	Started   time.Time     `json:"started"`             // by the wall clock, as is Finished
	Finished  time.Time     `json:"finished"`            // when the process itself was gone
	Wall      time.Duration `json:"wall_ns"`             // measured, also across a clock that was set
	Survivors []Survivor    `json:"survivors,omitempty"` // what was left when the process was gone
	Said      int64         `json:"said,omitempty"`      // bytes in stdout and Spec.Answer then
}

// Whole reports whether the run directory dir still has as much of what the
// process said as it had then: its files are not synced, so a machine that went
// down may have kept exit.json and lost part of them. The answer is the file
// Spec.Answer was, or "". An error is Passing, and nothing is known then.
func (e Exit) Whole(dir, answer string) (bool, error) {
	sum, err := said(dir, answer)
	return sum >= e.Said, err
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

// A Survivor is a process that its run left behind, and that we ended.
type Survivor struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // the first 15 bytes of its name
	Killed  bool   `json:"killed"`  // SIGTERM and the grace did not do
}

// ReadExit reads how the run in dir ended. It reports false when the run has
// not ended, or nobody was there to write down how.
func ReadExit(dir string) (Exit, bool, error) {
	var e Exit
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
