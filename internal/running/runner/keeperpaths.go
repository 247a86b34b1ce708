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

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// keeperPaths gives access to the files of one build's keeper: the socket, the lock that a
// live keeper holds, and a log for unexpected events.
type keeperPaths struct {
	root  *os.Root
	build string
}

const (
	socketSuffix = ".sock"
	lockSuffix   = ".lock"
	logSuffix    = ".log"
)

// builds lists the builds with a socket or a lock.
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

// address calls fn with a socket address that is short enough, whatever the directory's
// path.
func (p keeperPaths) address(fn func(address string) error) error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(fmt.Sprintf("/proc/self/fd/%d/%s%s", dir.Fd(), p.build, socketSuffix))
}

// dial connects to the keeper, if there is one.
func (p keeperPaths) dial(ctx context.Context) (l *connection, err error) {
	if err := fault.Read("keeper"); err != nil {
		return nil, err
	}
	err = p.address(func(address string) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
		if err != nil {
			return err
		}
		l = newConnection(conn)
		return l.greet(ctx)
	})
	if err != nil && l != nil {
		l.conn.Close()
	}
	return l, err
}

// await follows a run, if the keeper has it. If it returns because there is no keeper, the
// keeper won't touch the run any more.
func (p keeperPaths) await(ctx context.Context, dir string) (exit task.Exit, err error) {
	l, err := p.dial(context.WithoutCancel(ctx))
	if unreached(err) {
		return task.Exit{}, err
	}
	if err != nil {
		p.waitUntilDead(context.WithoutCancel(ctx))
		return task.Exit{}, err
	}
	defer l.conn.Close()
	exit, err = l.follow(ctx, request{Await: rawText(dir)}, nil)
	if errors.Is(err, ErrKeeperGone) {
		p.waitUntilDead(context.WithoutCancel(ctx))
	}
	return exit, err
}

// unreached reports whether an error of await leaves the existence of a keeper open: the
// machine, and not a keeper, refused the connection.
func unreached(err error) bool {
	_, refused := errors.AsType[*SpawnError](err)
	gone := errors.Is(err, ErrKeeperGone) || errors.Is(err, unix.ECONNREFUSED)
	return !refused && !gone && Passing(err)
}

// waitUntilDead waits until a killed keeper has really ended. A child that it was starting
// holds its lock and looks like the keeper until exec. A keeper that answers is a later
// one.
func (p keeperPaths) waitUntilDead(ctx context.Context) {
	const timeout = 2 * time.Second
	for began := time.Now(); time.Since(began) < timeout; pause(ctx, time.Millisecond) {
		if lock, err := p.lock(); lock != nil || err != nil {
			lock.Close() // nil is allowed
			return
		}
		if l, err := p.dial(ctx); err == nil {
			l.conn.Close()
			return
		}
	}
}

// listen replaces the socket. The caller must hold the lock.
func (p keeperPaths) listen() (f *os.File, err error) {
	_ = p.root.Remove(p.build + socketSuffix) // of a killed keeper
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

// lock returns the lock, or nil if another process has it: a live keeper, or a process that
// starts one.
func (p keeperPaths) lock() (*os.File, error) {
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
		err = errors.Join(err1, unix.EWOULDBLOCK) // it was removed meanwhile
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func (p keeperPaths) log() (*os.File, error) {
	return p.root.OpenFile(p.build+logSuffix, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// clear removes the files, the lock last. The caller must hold the lock.
func (p keeperPaths) clear() {
	_ = p.root.Remove(p.build + socketSuffix) // the next start replaces or removes a leftover
	if info, err := p.root.Stat(p.build + logSuffix); err == nil && info.Size() == 0 {
		_ = p.root.Remove(p.build + logSuffix)
	}
	_ = p.root.Remove(p.build + lockSuffix)
}
