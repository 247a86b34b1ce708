package runner

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Timer slack is how late the kernel may wake a thread from a timed wait. A process
// inherits it from the thread that starts it. Go's thread monitor wakes every 20 us while
// there is work, and hands the work of threads in longer system calls to other threads.
// More slack in the keeper makes both rarer: without it, the daemon and its keeper use a
// sixth more CPU time for a short run.
const (
	usualSlack  = 50 * time.Microsecond // the kernel's default
	keeperSlack = 5 * time.Millisecond
)

// withSlack calls start with a timer slack, which the started process inherits. If the user
// has set another slack, the process inherits that.
func withSlack(slack time.Duration, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if now := time.Duration(old); err == nil && (now == usualSlack || now == keeperSlack) {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) // affects speed only
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(old), 0, 0, 0) }()
	}
	return start()
}
