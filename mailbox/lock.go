package mailbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A LockedError says that another process serves the mailbox, or uses the state directory.
type LockedError struct {
	Root string // the locked directory
	PID  int    // 0 if unknown, as in another container
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return e.Root + " is served by mailboxd already"
	}
	return fmt.Sprintf("%s is served by mailboxd, process %d", e.Root, e.PID)
}

// Lock makes this process the only one that serves the mailbox, until Close or its end, and
// removes temporary files of a killed one. The lock is on the directory itself, so two
// configurations of the same mailbox exclude each other. If another process has it, the
// error is a *LockedError.
func (b *Box) Lock() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil {
		return nil
	}
	lock, err := flock(b.root, b.path)
	if err != nil {
		return err
	}
	if err := sweep(b.root); err != nil {
		return errors.Join(fmt.Errorf("sweep %s/%s: %w", b.path, tmpName, err), lock.Close())
	}
	b.lock = lock
	return nil
}

// letGo is the wait for a lock whose process can't be found. A child that a killed process
// was starting holds its descriptors until exec.
const letGo = 2 * time.Second

func flock(root *os.Root, path string) (*os.File, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	began := time.Now()
	for {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), dir.Close())
		}
		pid, _, _ := holder(dir) // 0 if unknown
		if lives(pid) || time.Since(began) > letGo {
			return nil, errors.Join(&LockedError{Root: path, PID: pid}, dir.Close())
		}
		time.Sleep(time.Millisecond)
	}
}

// lives reports whether a process with a PID exists; 0 is none.
func lives(pid int) bool { return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// sweep removes temporary files. Only the holder of the lock has any.
func sweep(root *os.Root) error {
	dir, err := root.Open(tmpName)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, root.RemoveAll(tmpName+"/"+name))
	}
	return err
}

// holder finds the process with a flock on the directory in /proc/locks; 0 is a process
// that isn't visible from here. A line there is "1: FLOCK ADVISORY WRITE 1234 08:02:131 0
// EOF".
func holder(dir *os.File) (pid int, held bool, err error) {
	info, err := dir.Stat()
	if err != nil {
		return 0, false, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	location := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0, false, err
	}
	defer locks.Close()
	lines := bufio.NewScanner(locks)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) >= 6 && words[1] == "FLOCK" && words[5] == location {
			pid, _ := strconv.Atoi(words[4]) // an error gives 0
			return max(pid, 0), true, nil
		}
	}
	return 0, false, lines.Err()
}

// sameDir reports whether the root is still the locked directory.
func sameDir(root *os.Root, lock *os.File) bool {
	now, err := root.Stat(".")
	if err != nil {
		return false
	}
	then, err := lock.Stat()
	return err == nil && os.SameFile(now, then)
}
