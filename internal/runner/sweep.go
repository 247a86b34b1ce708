package runner

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/task"
)

// Sweep ends what is left of the run in dir whose daemon is gone: SIGTERM, and
// SIGKILL after the grace. It finds the processes by the run's environment and mark, and
// by the session of the process in meta.json, if there is one, while that one lives;
// a number that was given to somebody else since is never signalled. It returns what it
// found, and with it an error when meta.json cannot be read.
func Sweep(dir string, grace time.Duration) ([]task.Survivor, error) {
	meta, _, err := ReadMeta(dir)
	leader := leaderOf(meta)
	left := func() []entry { return remains(dir, meta, leader) }
	return end(left, time.Now().Add(grace)), err
}

// leaderOf returns the process of a run while it lives, for then its session is
// the run's; 0 afterwards.
func leaderOf(meta Meta) int {
	if Alive(meta.Process) {
		return meta.Process.PID
	}
	return 0
}

// remains lists what there is of a run, wherever it hides.
func remains(dir string, meta Meta, leader int) []entry {
	ours := []mark{markFor(dir), mark(meta.Mark)} // an older keeper's are in its record alone
	return only(processes(), func(e entry) bool {
		if e.PID == os.Getpid() {
			return false
		}
		named, _ := environ(e.PID, DirVariable)
		m := markOf(e.PID)
		return leader > 0 && e.in(leader) || named == dir || m != 0 && slices.Contains(ours, m)
	})
}

// unkillable is how long we wait for processes that were sent SIGKILL. One that
// hangs in the kernel may need longer, and we cannot do more.
const unkillable = 5 * time.Second

// calm is how many lists in a row must be empty: one alone can miss a process
// that was born while the list was made, of one that was gone before its turn.
const calm = 2

// end ends the processes that find lists, until it lists none: each gets
// SIGTERM when it is first seen, and SIGKILL once patient is over.
func end(find func() []entry, patient time.Time) []task.Survivor {
	seen := map[int]task.Survivor{}
	hopeless := max(0, time.Until(patient)) + unkillable
	began, empty := time.Now(), 0
	for pause := time.Millisecond; empty < calm && time.Since(began) < hopeless; pause = min(2*pause, 16*time.Millisecond) {
		left := find()
		if empty++; len(left) > 0 {
			empty = 0
		}
		kill := !time.Now().Before(patient)
		for _, e := range left {
			known, told := seen[e.PID]
			switch {
			case kill:
				notify(e, unix.SIGKILL)
			case !told:
				notify(e, unix.SIGTERM)
				notify(e, unix.SIGCONT)
			}
			seen[e.PID] = task.Survivor{PID: e.PID, Command: e.Command, Killed: known.Killed || kill}
		}
		if empty < calm {
			time.Sleep(pause)
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b task.Survivor) int { return a.PID - b.PID })
}

// notify sends sig to exactly the process of the entry: the descriptor keeps
// its number from meaning another one between the check and the signal.
func notify(e entry, sig unix.Signal) {
	fd, err := unix.PidfdOpen(e.PID, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := stat(e.PID); ok && now.Start == e.Start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // gone since, or not ours to end
	}
}

// Await returns how the run in dir ended of which nobody is left who hosts it,
// after ending what is left of it. It reports false when nobody knows; the Exit
// then has the cause Lost. The error says why a record could not be read; when
// that is an *UnreadError, nothing is known yet and nothing was ended.
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
		if meta, ok, _ := ReadMeta(dir); ok { // an error here is swept
			exit.PID, exit.Started = meta.Process.PID, meta.StartedAt
		}
	} else {
		swept = nil // all is known
	}
	exit.Survivors = append(exit.Survivors, survivors...)
	return exit, ok, errors.Join(err, swept)
}
