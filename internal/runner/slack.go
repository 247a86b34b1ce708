package runner

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Timer slack is how late the kernel may wake a thread whose time has come, and
// what a process starts with is that of the thread that started it. A keeper has
// more of it than others, as Go's own watcher of its threads else sleeps for 20 us
// and wakes up again as long as anything goes on: six times in a short run, a
// fifth of what the keeper did for it. Nothing that a keeper waits for is so exact.
const (
	usualSlack  = 50 * time.Microsecond // unless somebody has set another
	keeperSlack = 5 * time.Millisecond
)

// withSlack has fn start a process with the slack to, if this one has the slack
// from; one that somebody chose is left as it is.
func withSlack(from, to time.Duration, fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	has, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && time.Duration(has) == from && unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(to), 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(from), 0, 0, 0)
	}
	return fn()
}
