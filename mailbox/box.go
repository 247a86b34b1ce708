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

// The directories of a mailbox that we make when they are missing.
const (
	tasksName   = "tasks"
	resultsName = "results"
	privateName = ".mailboxd"
	tmpName     = ".mailboxd/tmp"
)

// A Box is an open mailbox: one directory, and nothing outside it. Only Open
// makes one. All methods may be called from several goroutines at once.
type Box struct {
	path string

	mu       sync.RWMutex // guards what follows: Refresh replaces it
	root     *os.Root
	dir      *os.File // the same, for calls by its descriptor
	lock     *os.File // the directory that is flocked; nil when it is not
	warnings []*UnfitError
}

// Open opens the mailbox at path, symlinks resolved, and makes what is missing
// of it with mode 0700 (AINL-80). It refuses "/", the home directory, a
// directory that anybody may write to or that belongs to somebody else, and a
// tasks/ or results/ that leads outside or does not tell upper from lower case.
// The error says which path, and how to mend it.
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

// TasksDir returns the absolute path of the directory where tasks come in.
func (b *Box) TasksDir() string { return filepath.Join(b.path, tasksName) }

// ResultsDir returns the absolute path of the directory where results go out.
func (b *Box) ResultsDir() string { return filepath.Join(b.path, resultsName) }

// Warnings returns what an operator should mend although the mailbox works,
// each with its mend.
func (b *Box) Warnings() []*UnfitError {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.warnings)
}

// Refresh notices that the mailbox, its tasks/ or its results/ was removed or
// replaced, and then makes and opens it anew, under the same rules as Open and
// with the lock that was held. It reports whether it did: results that stood
// there have to be put again. When nothing changed it costs a few stats.
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

// hasDir reports whether a directory is there, or a symlink that stays in the
// mailbox leads to one.
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
		b.lock.Close() // a directory that is gone: there is nothing to lose
	}
	b.root.Close() // likewise
	b.dir.Close()
	b.root, b.dir, b.lock, b.warnings = root, dir, lock, warnings
	return nil
}

// hold opens the directory that is root, or closes root.
func hold(root *os.Root) (*os.File, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return dir, nil
}

// Close gives the mailbox and its lock back.
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

// use returns the root of now, and what to call when it is no longer needed.
func (b *Box) use() (root *os.Root, release func()) {
	b.mu.RLock()
	return b.root, b.mu.RUnlock
}

// openDir opens a directory as of now, for a quarter of what root.Open costs. A
// symlink that stays in the mailbox is followed. The caller has b in use.
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
