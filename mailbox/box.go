package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Directories of a mailbox that Open creates.
const (
	tasksName   = "tasks"
	resultsName = "results"
	privateName = ".mailboxd"
	tmpName     = ".mailboxd/tmp"
)

// A Box is an open mailbox: one directory, and nothing outside it. Only Open makes one. All
// methods may be called concurrently.
type Box struct {
	path string

	mu       sync.RWMutex // guards the fields below, which Refresh replaces
	root     *os.Root
	dir      *os.File // of root, for system calls
	lock     *os.File // the locked directory; nil: not locked
	warnings []*UnfitError
}

// Open opens the mailbox at path, with symlinks resolved, and creates missing directories
// with mode 0700 (AINL-80). It refuses "/", the home directory, a directory that is
// world-writable or belongs to another user, and a tasks/ or results/ that leads outside or
// isn't case-sensitive. The error names the path and a remedy.
func Open(path string) (*Box, error) {
	resolved, err := locate(path)
	if err != nil {
		return nil, fmt.Errorf("open mailbox %s: %w", path, err)
	}
	root, warnings, err := openRoot(resolved)
	if err != nil {
		return nil, fmt.Errorf("open mailbox: %w", err)
	}
	dir, err := hold(root)
	if err != nil {
		return nil, fmt.Errorf("open mailbox: %w", err)
	}
	return &Box{path: resolved, root: root, dir: dir, warnings: warnings}, nil
}

// Path returns the absolute path of the mailbox, without symlinks.
func (b *Box) Path() string { return b.path }

// TasksDir returns the absolute path of tasks/.
func (b *Box) TasksDir() string { return filepath.Join(b.path, tasksName) }

// ResultsDir returns the absolute path of results/.
func (b *Box) ResultsDir() string { return filepath.Join(b.path, resultsName) }

// Warnings returns problems that the operator should fix although the mailbox works, each
// with a remedy.
func (b *Box) Warnings() []*UnfitError {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.warnings)
}

// Refresh detects that the mailbox, its tasks/ or its results/ was removed or replaced. It
// then creates and opens it again, under the rules of Open and with the same lock. It
// reports whether it did: then earlier results have to be put again. Without a change, it
// costs a few stat calls.
func (b *Box) Refresh() (replaced bool, err error) {
	if b.intact() {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.reopen(); err != nil {
		return false, fmt.Errorf("refresh mailbox: %w", err)
	}
	return true, nil
}

func (b *Box) intact() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var named, held unix.Stat_t
	if unix.Stat(b.path, &named) != nil || unix.Fstat(int(b.dir.Fd()), &held) != nil || newStamp(&named).key != newStamp(&held).key {
		return false
	}
	return b.hasDir(tasksName) && b.hasDir(resultsName)
}

// hasDir reports whether a directory exists, or a symlink to one inside the mailbox.
func (b *Box) hasDir(name string) bool {
	var there unix.Stat_t
	if err := unix.Fstatat(int(b.dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false
	}
	if there.Mode&unix.S_IFMT == unix.S_IFDIR {
		return true
	}
	info, err := b.root.Stat(name)
	return err == nil && info.IsDir()
}

func (b *Box) reopen() error {
	if err := makeAll(b.path); err != nil {
		return err
	}
	root, warnings, err := openRoot(b.path)
	if err != nil {
		return err
	}
	dir, err := hold(root)
	if err != nil {
		return err
	}
	lock := b.lock
	if lock != nil && !sameDir(root, lock) {
		if lock, err = flock(root, b.path); err != nil {
			return errors.Join(err, dir.Close(), root.Close())
		}
		b.lock.Close() // the old directory: nothing can be lost
	}
	b.root.Close() // as above
	b.dir.Close()
	b.root, b.dir, b.lock, b.warnings = root, dir, lock, warnings
	return nil
}

// hold opens the directory of root, or closes root on an error.
func hold(root *os.Root) (*os.File, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return dir, nil
}

// Close closes the mailbox and releases its lock.
func (b *Box) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := errors.Join(b.root.Close(), b.dir.Close())
	if b.lock != nil {
		err = errors.Join(err, b.lock.Close())
		b.lock = nil
	}
	return err
}

// use returns the current root, and a function to release it.
func (b *Box) use() (root *os.Root, release func()) {
	b.mu.RLock()
	return b.root, b.mu.RUnlock
}

// openDir opens a current directory at a quarter of the cost of root.Open. It follows a
// symlink that stays in the mailbox. The caller must hold b.use.
func (b *Box) openDir(name string, flags int) (fd int, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		fd, err = unix.Openat(int(b.dir.Fd()), name, flags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if !errors.Is(err, unix.ENOTDIR) {
		return fd, os.NewSyscallError("openat "+name, err)
	}
	dir, err := b.root.Open(name)
	if err != nil {
		return -1, err
	}
	defer dir.Close()
	fd, err = unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return fd, os.NewSyscallError("dup "+name, err)
}
