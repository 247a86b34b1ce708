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
	Dir   string // absolute
	Name  string // of the socket in it
	Group int    // the id of a group whose members may connect too; 0 for none
}

// SocketPaths are where the control socket of a mailbox may be, the best first: the
// user's runtime directory, as the environment has it and as the system usually
// gives it, and the private half of the mailbox. The slug names the mailbox.
func SocketPaths(stateDir, slug string) []SocketPath {
	name := slug + ".sock"
	var places []SocketPath
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, SocketPath{Dir: filepath.Join(dir, "mailboxd"), Name: name})
	} else {
		usual := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "mailboxd")
		places = append(places, SocketPath{Dir: usual, Name: name}) // where a daemon may be that has the variable
	}
	return append(places, SocketPath{Dir: stateDir, Name: name})
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

// Listen replaces the socket by a new one of mode 0600, in a directory of mode 0700. With a
// Group, the modes are 0660 and 0750. Listen makes a missing directory; nobody else may be able
// to write to it. Only the process that has the lock of the mailbox may call Listen.
func (p SocketPath) Listen(ctx context.Context) (listener net.Listener, err error) {
	if err := p.makeDir(); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	if p.Group != 0 && p.answers(ctx) { // the lock of the mailbox doesn't cover this path
		return nil, fmt.Errorf("listen on %s: another daemon answers there", p)
	}
	err = p.address(func(dir *os.Root, address string) error {
		if err := dir.Remove(p.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // that of a daemon that was killed
		}
		config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			denied := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }) // before bind makes the name
			return errors.Join(denied, err)
		}}
		if listener, err = config.Listen(ctx, "unix", address); err != nil || p.Group == 0 {
			return err
		}
		if err = errors.Join(dir.Lchown(p.Name, -1, p.Group), dir.Chmod(p.Name, 0o660)); err != nil {
			listener.Close()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // its address means nothing by then
	return listener, nil
}

// answers reports whether a daemon listens on the socket.
func (p SocketPath) answers(ctx context.Context) bool {
	conn, err := p.Dial(ctx)
	if err != nil {
		return false
	}
	conn.Close()
	return true
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

// makeDir makes the directory of the socket if it is missing, and checks who may use it.
func (p SocketPath) makeDir() error {
	if err := os.Mkdir(p.Dir, 0o700); err == nil && p.Group != 0 {
		if err := errors.Join(os.Chown(p.Dir, -1, p.Group), os.Chmod(p.Dir, 0o750)); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return p.CheckDir()
}

// CheckDir refuses a directory in which somebody else could put a socket, or that somebody
// else may look into. Members of the Group may look into it.
func (p SocketPath) CheckDir() error {
	info, err := os.Lstat(p.Dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case !info.IsDir():
		return errors.New("its directory is none")
	case int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("its directory belongs to user %d", owner.Uid)
	case p.Group == 0 && mode&0o077 != 0, mode&0o007 != 0:
		return errors.New("others may look into its directory")
	case p.Group != 0 && int(owner.Gid) != p.Group:
		return fmt.Errorf("its directory belongs to group %d, and not to group %d", owner.Gid, p.Group)
	case mode&0o020 != 0:
		return errors.New("its group may write to its directory")
	case p.Group != 0 && mode&0o010 == 0:
		return errors.New("its group may not look into its directory; its mode must be 0750")
	}
	return nil
}
