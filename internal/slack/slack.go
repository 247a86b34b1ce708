// Package slack lets our own timers be late, and nobody else's. Timer slack is how
// late the kernel may wake a thread whose time has come; a process begins with that
// of the thread that starts it.
//
// Go has a watcher of its threads that sleeps for 20 us and wakes up again as long
// as anything goes on, and that hands the work of a thread which is in the kernel
// for longer than that to another one. With more slack than usual both happen less
// often: that is a fifth of the processor time of a short run.
package slack

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How much slack there is.
const (
	Usual  = 50 * time.Microsecond // for everybody, unless somebody has set another
	Daemon = time.Millisecond
	Keeper = 5 * time.Millisecond // which waits for nothing that is so exact
)

// Start has start start a process with so much slack, if this one's was set by us:
// what somebody else has chosen is left as it is.
func Start(slack time.Duration, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	has := current()
	if ours := has == Usual || has == Daemon || has == Keeper; ours && set(slack) {
		defer set(has)
	}
	return start()
}

// relaxed is the variable that says that the program was executed anew.
const relaxed = "MAILBOXD_RELAXED"

// Relax gives this process the slack of a daemon, unless somebody has chosen
// another. It executes the program anew for that, and does not return then: Go's
// watcher is there before we are, and has what there was when it came.
func Relax() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	program, err := os.Executable()
	if os.Getenv(relaxed) != "" { // and has it not where the slack does not outlive that
		_ = os.Unsetenv(relaxed)
		return
	}
	if err != nil || current() != Usual || !set(Daemon) {
		return
	}
	_ = syscall.Exec(program, os.Args, append(os.Environ(), relaxed+"=1")) // or it stays as it is
	set(Usual)
}

// current is the slack of this thread; 0 when it is not known.
func current() time.Duration {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return time.Duration(slack)
}

// set reports whether this thread has so much slack then: a real-time one has none.
func set(slack time.Duration) bool {
	return unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) == nil && current() == slack
}
