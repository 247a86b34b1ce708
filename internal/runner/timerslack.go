package runner

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Timer slack is how late the kernel may wake a thread from a timed wait. A process
// inherits it from the thread that starts it. Go's monitor of threads wakes up
// every 20 us while there is work, and gives the work of a thread that is in the kernel
// for longer to another one. More slack in the keeper makes both rarer: without
// it a short run takes a sixth more processor time of the daemon and its keeper.
const (
	usualSlack  = 50 * time.Microsecond // the kernel's default
	keeperSlack = 5 * time.Millisecond
)

// withSlack calls start, which starts a process with that timer slack. A slack
// that is neither of ours was set by the user: the process inherits it.
func withSlack(slack time.Duration, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if now := time.Duration(old); err == nil && (now == usualSlack || now == keeperSlack) {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) // a matter of speed alone
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(old), 0, 0, 0) }()
	}
	return start()
}
