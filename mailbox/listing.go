package mailbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An inode is a file, whatever it is called.
type inode struct{ dev, ino uint64 }

// A stamp is how a file looks from outside. When it looks the same it is the
// same, as far as a look can tell.
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

// found is a name in tasks/ and what it means.
type found struct {
	name  string
	stamp stamp
	err   error // why it is not to be read
}

// A listing is the task files in a directory, by name. It reads the names again
// only when the directory changed.
type listing struct {
	dir   stamp
	names []string
	found []found // regular files
	odd   []found // what else has such a name, with an error
}

// update stats every task file, and nothing but task files.
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
		case !errors.Is(err, unix.ENOENT): // gone since
			l.odd = append(l.odd, f)
		}
	}
	return nil
}

// has reports whether the name was there.
func (l *listing) has(name string) bool {
	_, ok := slices.BinarySearch(l.names, name)
	return ok
}

// taskNames lists *.jsonl, without hidden files. Editors' backups end otherwise.
func taskNames(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasSuffix(name, taskSuffix) || strings.HasPrefix(name, ".")
	})
	slices.Sort(names)
	return names, err
}
