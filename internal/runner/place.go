package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// A place is where the keeper of one build has its files: the socket, the lock
// that says that it lives, and a log for the unexpected.
type place struct {
	root  *os.Root
	build string
}

const (
	socketSuffix = ".sock"
	lockSuffix   = ".lock"
	logSuffix    = ".log"
)

// builds lists the builds that have a socket or a lock there.
func builds(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var all []string
	for _, name := range names {
		if build, ok := strings.CutSuffix(name, lockSuffix); ok {
			all = append(all, build)
		}
	}
	return all, err
}

// address calls fn with an address of the socket that is short enough for one,
// wherever the directory lies.
func (p place) address(fn func(address string) error) error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(fmt.Sprintf("/proc/self/fd/%d/%s%s", dir.Fd(), p.build, socketSuffix))
}

// dial connects to the keeper, if there is one.
func (p place) dial(ctx context.Context) (l *line, err error) {
	if err := fault.Read("keeper"); err != nil {
		return nil, err
	}
	err = p.address(func(address string) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
		if err != nil {
			return err
		}
		l = newLine(conn)
		return l.greet(ctx)
	})
	if err != nil && l != nil {
		l.conn.Close()
	}
	return l, err
}

// await follows a run, if the keeper has it. When there is no keeper, or none
// any more, nothing of it is still to come once await returns.
func (p place) await(ctx context.Context, dir string) (exit task.Exit, err error) {
	l, err := p.dial(context.WithoutCancel(ctx))
	if unreached(err) {
		return task.Exit{}, err
	}
	if err != nil {
		p.outlast(context.WithoutCancel(ctx))
		return task.Exit{}, err
	}
	defer l.conn.Close()
	exit, err = l.follow(ctx, demand{Await: exact(dir)}, nil)
	if errors.Is(err, ErrKeeperGone) {
		p.outlast(context.WithoutCancel(ctx))
	}
	return exit, err
}

// unreached reports whether an error of await leaves open whether there is a
// keeper: the machine refused the connection, and no keeper did.
func unreached(err error) bool {
	_, refused := errors.AsType[*SpawnError](err)
	gone := errors.Is(err, ErrKeeperGone) || errors.Is(err, unix.ECONNREFUSED)
	return !refused && !gone && Passing(err)
}

// outlast waits for the last of a keeper that was killed. A child that it was
// just starting is not to be told from the keeper, and has its lock, until it
// executes its program; a keeper that answers came after it.
func (p place) outlast(ctx context.Context) {
	const letGo = 2 * time.Second
	for began := time.Now(); time.Since(began) < letGo; pause(ctx, time.Millisecond) {
		if lock, err := p.lock(); lock != nil || err != nil {
			lock.Close() // of nil is fine
			return
		}
		if l, err := p.dial(ctx); err == nil {
			l.conn.Close()
			return
		}
	}
}

// listen replaces the socket by a new one. Only who has the lock may.
func (p place) listen() (f *os.File, err error) {
	_ = p.root.Remove(p.build + socketSuffix) // that of a keeper that was killed
	err = p.address(func(address string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
		if err != nil {
			return err
		}
		listener.SetUnlinkOnClose(false)
		defer listener.Close()
		f, err = listener.File()
		return errors.Join(err, p.root.Chmod(p.build+socketSuffix, 0o600))
	})
	return f, err
}

// lock returns the lock, or nil when somebody else has it: a keeper that lives,
// or somebody who is about to start one.
func (p place) lock() (*os.File, error) {
	name := p.build + lockSuffix
	f, err := p.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		mine, err1 := f.Stat()
		there, err2 := p.root.Lstat(name)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, nil
		}
		err = errors.Join(err1, unix.EWOULDBLOCK) // it was taken away before we had it
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func (p place) log() (*os.File, error) {
	return p.root.OpenFile(p.build+logSuffix, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// clear removes the files. Only who has the lock may, and it goes last.
func (p place) clear() {
	_ = p.root.Remove(p.build + socketSuffix) // what stays is replaced, or cleared by the next
	if info, err := p.root.Stat(p.build + logSuffix); err == nil && info.Size() == 0 {
		_ = p.root.Remove(p.build + logSuffix)
	}
	_ = p.root.Remove(p.build + lockSuffix)
}
