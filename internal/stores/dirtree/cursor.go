// Package dirtree measures, copies and removes directories that other programs left, whatever
// their depth and their modes, and reads and writes whole files. It follows no link. Work is linear
// in the number of entries: each directory is opened relative to its parent.
package dirtree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// mostOpen limits the open directories of a Cursor. Those above are opened again on the way back.
	mostOpen = 64

	// mostLevels limits the depth of a Cursor, and so its memory.
	mostLevels = 200_000
)

// Options say how a Cursor enters directories.
type Options struct {
	Unlock bool // give this user all rights in each directory that belongs to it
	Mounts bool // enter mount points
}

// A Cursor is in a directory of a tree. Open makes one; it must be closed. It isn't safe for
// concurrent use.
type Cursor struct {
	opts   Options
	levels []level
}

// A level is a directory between the top of a tree and the place of a Cursor.
type level struct {
	name string
	fd   int // -1: closed meanwhile
	dev  uint64
	ino  uint64
}

// Open returns a Cursor in a directory.
func Open(dir string, opts Options) (*Cursor, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return newCursor(fd, opts)
}

// OpenIn returns a Cursor in the directory of an os.Root.
func OpenIn(root *os.Root, opts Options) (*Cursor, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return newCursor(fd, opts)
}

// newCursor takes over fd.
func newCursor(fd int, opts Options) (*Cursor, error) {
	c := &Cursor{opts: opts}
	if err := c.push("", fd); err != nil {
		return nil, err
	}
	return c, nil
}

// push takes over the descriptor of the next level.
func (c *Cursor) push(name string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errors.Join(os.NewSyscallError("fstat", err), unix.Close(fd))
	}
	c.levels = append(c.levels, level{name, fd, st.Dev, st.Ino})
	if above := len(c.levels) - 1 - mostOpen; above >= 0 && c.levels[above].fd >= 0 {
		_ = unix.Close(c.levels[above].fd)
		c.levels[above].fd = -1
	}
	return nil
}

// Enter enters a directory of the current one. The error wraps unix.ELOOP or unix.ENOTDIR when
// the name isn't that of a directory, and unix.EXDEV at a mount point without Mounts.
func (c *Cursor) Enter(name string) error {
	if len(c.levels) > mostLevels {
		return fmt.Errorf("%s: more than %d directories in each other", c.Path(name), mostLevels)
	}
	held, err := openBeneath(c.FD(), name, c.opts.Mounts)
	if err != nil {
		return &fs.PathError{Op: "open", Path: c.Path(name), Err: err}
	}
	defer unix.Close(held)
	if c.opts.Unlock {
		if err := addRights(held, unix.S_IRWXU); err != nil {
			return &fs.PathError{Op: "chmod", Path: c.Path(name), Err: err}
		}
	}
	fd, err := unix.Openat(held, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: c.Path(name), Err: err}
	}
	return c.push(name, fd)
}

// openBeneath opens a directory without reading it.
func openBeneath(at int, name string, mounts bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if mounts {
		return unix.Openat(at, name, flags, 0)
	}
	how := &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(at, name, how)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.6
		return unix.Openat(at, name, flags, 0)
	}
	return fd, err
}

// addRights gives this user the rights bits on an object of its own. It changes no object of others.
func addRights(fd int, bits uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&bits == bits {
		return nil
	}
	return unix.Chmod(procPath(fd), st.Mode&0o7777|bits)
}

// procPath names an open file. Changing its mode by that name follows no other link.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// UnlockFile gives this user the right to read a file of the current directory, if the file is
// its own.
func (c *Cursor) UnlockFile(name string) error {
	fd, err := unix.Openat(c.FD(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return err
	}
	return addRights(fd, unix.S_IRUSR)
}

// Leave returns to the directory above.
func (c *Cursor) Leave() error {
	last := len(c.levels) - 1
	left, above := c.levels[last], &c.levels[last-1]
	defer unix.Close(left.fd)
	c.levels = c.levels[:last]
	if above.fd >= 0 {
		return nil
	}
	fd, err := unix.Openat(left.fd, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "return to", Path: c.Path("."), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != above.dev || st.Ino != above.ino {
		return errors.Join(&fs.PathError{Op: "return to", Path: c.Path("."), Err: errors.New("its directory was moved meanwhile")}, unix.Close(fd))
	}
	above.fd = fd
	return nil
}

// FD returns the descriptor of the current directory. The Cursor keeps it.
func (c *Cursor) FD() int { return c.levels[len(c.levels)-1].fd }

// Root returns an os.Root of the current directory, which the caller closes.
func (c *Cursor) Root() (*os.Root, error) { return os.OpenRoot(procPath(c.FD())) }

// Path returns the path of a name in the current directory, relative to the top. A path that is
// too long to print is shortened in the middle.
func (c *Cursor) Path(name string) string {
	const shown = 8 // levels at each end
	names := make([]string, 0, 2*shown+2)
	for i, l := range c.levels[1:] {
		switch left := len(c.levels) - 1 - i; {
		case i < shown || left <= shown:
			names = append(names, l.name)
		case i == shown:
			names = append(names, "...")
		}
	}
	return path.Join(strings.Join(names, "/"), name)
}

// Close closes all directories.
func (c *Cursor) Close() {
	for _, l := range c.levels {
		if l.fd >= 0 {
			_ = unix.Close(l.fd)
		}
	}
	c.levels = nil
}

// each calls do for each name in the current directory, which do may remove.
func (c *Cursor) each(do func(name string)) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(c.FD(), buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return os.NewSyscallError("getdents", err)
		}
		_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			do(name)
		}
	}
}
