package mailbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An inode identifies a file independent of its name.
type inode struct{ dev, ino uint64 }

// A stamp is the visible state of a file. Files with equal stamps count as unchanged.
type stamp struct {
	key          inode
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(fd int) (stamp, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return stamp{}, os.NewSyscallError("fstat", err)
	}
	return newStamp(&stat), nil
}

func newStamp(stat *unix.Stat_t) stamp {
	return stamp{
		key:  inode{uint64(stat.Dev), stat.Ino},
		size: stat.Size, mtime: stat.Mtim, ctime: stat.Ctim,
	}
}

// found is a name in tasks/ with its file.
type found struct {
	name  string
	stamp stamp
	err   error // why it can't be read
}

// A listing holds the task files of a directory, by name. It reads the names again only if
// the directory has changed.
type listing struct {
	dir   stamp
	names []string
	found []found // regular files
	odd   []found // other files with such names, with errors
}

// update stats every task file, and no other file.
func (l *listing) update(dir *os.File) error {
	now, err := stampOf(int(dir.Fd()))
	if err != nil {
		return err
	}
	if now != l.dir {
		if l.names, err = taskNames(dir); err != nil {
			return err
		}
		l.dir = stamp{}
		if time.Since(time.Unix(now.mtime.Unix())) > settledAfter {
			l.dir = now
		}
	}
	l.found, l.odd = l.found[:0], l.odd[:0]
	for _, name := range l.names {
		var stat unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG {
			err = ErrNotRegular
		}
		switch f := (found{name, newStamp(&stat), err}); {
		case err == nil:
			l.found = append(l.found, f)
		case !errors.Is(err, unix.ENOENT): // removed since
			l.odd = append(l.odd, f)
		}
	}
	return nil
}

// has reports whether the name exists.
func (l *listing) has(name string) bool {
	_, ok := slices.BinarySearch(l.names, name)
	return ok
}

// taskNames lists *.jsonl without hidden files. Editors' backups have other suffixes.
func taskNames(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasSuffix(name, taskSuffix) || strings.HasPrefix(name, ".")
	})
	slices.Sort(names)
	return names, err
}
