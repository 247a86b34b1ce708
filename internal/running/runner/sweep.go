package runner

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// Sweep ends the rest of the run in dir after its daemon is gone: SIGTERM, and SIGKILL
// after the grace period. It finds the processes by the run's environment and mark, and by
// the session of the process in meta.json while that process lives. It never signals a
// reused PID. It returns the processes found; an error says that meta.json can't be read.
func Sweep(dir string, grace time.Duration) ([]task.Survivor, error) {
	meta, _, err := ReadMeta(dir)
	leader := leaderOf(meta)
	left := func() []entry { return runEntries(dir, meta, leader) }
	return endProcesses(left, time.Now().Add(grace)), err
}

// leaderOf returns the PID of a run's process while it lives, because only then its session
// is the run's; 0 otherwise.
func leaderOf(meta Meta) int {
	if Alive(meta.Process) {
		return meta.Process.PID
	}
	return 0
}

// runEntries lists all processes of a run.
func runEntries(dir string, meta Meta, leader int) []entry {
	ours := []runMark{markFor(dir), runMark(meta.Mark)} // an older keeper recorded another mark
	return only(processes(), func(e entry) bool {
		if e.PID == os.Getpid() {
			return false
		}
		named, _ := environ(e.PID, DirVariable)
		m := markOf(e.PID)
		return leader > 0 && e.inGroup(leader) || named == dir || m != 0 && slices.Contains(ours, m)
	})
}

// killTimeout is the wait for processes after SIGKILL. A process that hangs in the kernel
// may need longer; nothing more can be done.
const killTimeout = 5 * time.Second

// emptyScans is the number of consecutive scans that must be empty. One scan can miss a
// process that was started during the scan by a parent that was already gone.
const emptyScans = 2

// endProcesses ends the processes that find lists, until it lists none. Each gets SIGTERM
// when it is first seen, and SIGKILL after graceEnd.
func endProcesses(find func() []entry, patient time.Time) []task.Survivor {
	seen := map[int]task.Survivor{}
	hopeless := max(0, time.Until(patient)) + killTimeout
	began, empty := time.Now(), 0
	for pause := time.Millisecond; empty < emptyScans && time.Since(began) < hopeless; pause = min(2*pause, 16*time.Millisecond) {
		left := find()
		if empty++; len(left) > 0 {
			empty = 0
		}
		kill := !time.Now().Before(patient)
		for _, e := range left {
			known, notified := seen[e.PID]
			switch {
			case kill:
				signalEntry(e, unix.SIGKILL)
			case !notified:
				signalEntry(e, unix.SIGTERM)
				signalEntry(e, unix.SIGCONT)
			}
			seen[e.PID] = task.Survivor{PID: e.PID, Command: e.Command, Killed: known.Killed || kill}
		}
		if empty < emptyScans {
			time.Sleep(pause)
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b task.Survivor) int { return a.PID - b.PID })
}

// signalEntry sends sig to exactly the process of the entry: the pidfd excludes a reused
// PID.
func signalEntry(e entry, sig unix.Signal) {
	fd, err := unix.PidfdOpen(e.PID, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := stat(e.PID); ok && now.Start == e.Start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // gone, or not permitted
	}
}

// Await returns how the run in dir ended that no process hosts any more, and ends its
// remaining processes. It returns false if the end is unknown; the Exit then has the cause
// Lost. The error says why a record couldn't be read; after an *UnreadError, nothing is
// known and nothing was ended.
func Await(dir string, grace time.Duration) (task.Exit, bool, error) {
	if _, _, err := ReadMeta(dir); Passing(err) {
		return task.Exit{}, false, &UnreadError{err} // without it, processes of the run may not be found
	}
	survivors, swept := Sweep(dir, grace)
	exit, ok, err := ReadExit(dir)
	if Passing(err) {
		return task.Exit{}, false, &UnreadError{err}
	}
	if !ok || err != nil {
		exit, ok = task.Exit{Code: -1, Cause: task.CauseLost}, false
		if meta, ok, _ := ReadMeta(dir); ok { // with an error, sweep without it
			exit.PID, exit.Started = meta.Process.PID, meta.StartedAt
		}
	} else {
		swept = nil // the end is known
	}
	exit.Survivors = append(exit.Survivors, survivors...)
	return exit, ok, errors.Join(err, swept)
}
