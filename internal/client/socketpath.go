package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A SocketPath is where a control socket is, or may be.
type SocketPath struct {
	Dir  string // absolute
	Name string // of the socket in it
}

// SocketPaths are where the control socket of a mailbox may be, the best first: the
// user's runtime directory, as the environment has it and as the system usually
// gives it, and the private half of the mailbox. The slug names the mailbox.
func SocketPaths(stateDir, slug string) []SocketPath {
	name := slug + ".sock"
	var places []SocketPath
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, SocketPath{filepath.Join(dir, "mailboxd"), name})
	} else {
		usual := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "mailboxd")
		places = append(places, SocketPath{usual, name}) // where a daemon may be that has the variable
	}
	return append(places, SocketPath{stateDir, name})
}

// String returns the path of the socket.
func (p SocketPath) String() string { return filepath.Join(p.Dir, p.Name) }

// Dial connects to the socket.
func (p SocketPath) Dial(ctx context.Context) (conn net.Conn, err error) {
	err = p.address(func(_ *os.Root, address string) error {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", address)
		return err
	})
	return conn, err
}

// Listen replaces the socket by a new one, mode 0600, in a directory that is
// made with mode 0700 when it is missing and must be ours alone. Only who has
// the lock of the mailbox may.
func (p SocketPath) Listen(ctx context.Context) (listener net.Listener, err error) {
	if err := os.Mkdir(p.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	if err := private(p.Dir); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	err = p.address(func(dir *os.Root, address string) error {
		if err := dir.Remove(p.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // that of a daemon that was killed
		}
		config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			denied := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }) // before bind makes the name
			return errors.Join(denied, err)
		}}
		listener, err = config.Listen(ctx, "unix", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // its address means nothing by then
	return listener, nil
}

// Exists reports whether something has the name of the socket.
func (p SocketPath) Exists() bool {
	_, err := os.Lstat(p.String())
	return err == nil
}

// Remove takes the socket away. Only who has the lock of the mailbox may.
func (p SocketPath) Remove() error {
	err := os.Remove(p.String())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// address calls fn with an address of the socket that is short enough for one
// (108 bytes, unix(7)), wherever the directory lies.
func (p SocketPath) address(fn func(dir *os.Root, address string) error) error {
	dir, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return fn(dir, fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), p.Name))
}

// private refuses a directory in which somebody else could put a socket.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch owner := int(info.Sys().(*syscall.Stat_t).Uid); {
	case !info.IsDir():
		return errors.New("its directory is none")
	case owner != os.Geteuid():
		return fmt.Errorf("its directory belongs to user %d", owner)
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("others may look into its directory")
	}
	return nil
}
