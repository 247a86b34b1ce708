package runner

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A life is a child of ours that is not reaped yet, as something to wait for.
// It costs no thread: the poller tells when the process has ended.
type life struct {
	pid   int
	file  *os.File // its descriptor, readable once it has ended
	conn  syscall.RawConn
	ended time.Time // when we saw that it had; zero: it lives
}

// newLife takes over the descriptor of the process, or -1 from a kernel that
// gives none.
func newLife(pid, fd int) *life {
	l := &life{pid: pid}
	if fd >= 0 {
		_ = unix.SetNonblock(fd, true) // NewFile hands what does not block to the poller
		l.file = os.NewFile(uintptr(fd), "process")
		l.conn, _ = l.file.SyscallConn() // never an error of an open file
	}
	return l
}

// over reports whether the process has ended. It is left to be reaped.
func (l *life) over() bool {
	if !l.ended.IsZero() {
		return true
	}
	var info unix.Siginfo
	err := uninterrupted(func() error {
		return unix.Waitid(unix.P_PID, l.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	})
	if err != nil || info.Signo != 0 { // an error: somebody else has reaped it
		l.ended = time.Now()
	}
	return !l.ended.IsZero()
}

// wait waits until the process ends, ctx does or a moment has come, the zero
// time being never; perhaps not as long.
func (l *life) wait(ctx context.Context, until time.Time) {
	const asleep = 5 * time.Millisecond
	if l.file == nil || l.file.SetReadDeadline(until) != nil { // the poller could not take it
		pause(ctx, asleep)
		return
	}
	if ctx.Err() == nil { // or else what look did is undone by now
		_ = l.conn.Read(func(uintptr) bool { return l.over() })
	}
}

// look ends a wait early. It may be called concurrently with everything else.
func (l *life) look() {
	if l.file != nil {
		_ = l.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// endsBy waits until the process has ended, which it reports, or a moment has
// come, the zero time being never.
func (l *life) endsBy(until time.Time) bool {
	for !l.over() {
		if !until.IsZero() && !time.Now().Before(until) {
			return false
		}
		l.wait(context.Background(), until)
	}
	return true
}

func (l *life) close() {
	if l.file != nil {
		l.file.Close()
	}
}
