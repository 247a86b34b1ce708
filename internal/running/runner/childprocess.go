package runner

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A childProcess waits for a child that isn't reaped yet. It needs no thread: the poller
// notices the exit.
type childProcess struct {
	pid   int
	file  *os.File // a pidfd; readable after the exit
	conn  syscall.RawConn
	ended time.Time // when the exit was noticed; zero: running
}

// newChildProcess takes over the pidfd of a process, or -1 from a kernel without pidfds.
func newChildProcess(pid, fd int) *childProcess {
	l := &childProcess{pid: pid}
	if fd >= 0 {
		_ = unix.SetNonblock(fd, true) // NewFile adds non-blocking files to the poller
		l.file = os.NewFile(uintptr(fd), "process")
		l.conn, _ = l.file.SyscallConn() // never an error for an open file
	}
	return l
}

// hasExited reports whether the process has ended. It isn't reaped.
func (l *childProcess) hasExited() bool {
	if !l.ended.IsZero() {
		return true
	}
	var info unix.Siginfo
	err := uninterrupted(func() error {
		return unix.Waitid(unix.P_PID, l.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	})
	if err != nil || info.Signo != 0 { // an error: it is reaped already
		l.ended = time.Now()
	}
	return !l.ended.IsZero()
}

// wait waits until the process ends, ctx ends or a time comes, but may return earlier. A
// zero time never comes.
func (l *childProcess) wait(ctx context.Context, until time.Time) {
	const asleep = 5 * time.Millisecond
	if l.file == nil || l.file.SetReadDeadline(until) != nil { // the poller doesn't support it
		pause(ctx, asleep)
		return
	}
	if ctx.Err() == nil { // otherwise SetReadDeadline has undone interrupt
		_ = l.conn.Read(func(uintptr) bool { return l.hasExited() })
	}
}

// interrupt ends a wait early. It may be called at any time.
func (l *childProcess) interrupt() {
	if l.file != nil {
		_ = l.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// waitUntil waits until the process has ended or a time has come, and reports whether it
// has ended. A zero time never comes.
func (l *childProcess) waitUntil(until time.Time) bool {
	for !l.hasExited() {
		if !until.IsZero() && !time.Now().Before(until) {
			return false
		}
		l.wait(context.Background(), until)
	}
	return true
}

func (l *childProcess) close() {
	if l.file != nil {
		l.file.Close()
	}
}
