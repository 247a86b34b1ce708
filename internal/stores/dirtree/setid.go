package dirtree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// setIDBits let each user start a file as its owner or its group.
const setIDBits = unix.S_ISUID | unix.S_ISGID

// clockTick is how far the time of a change may lie before the clock: the kernel stamps files by a
// clock that ticks.
const clockTick = 20 * time.Millisecond

// A SetIDSearch finds set-user-id and set-group-id files that were made or changed since a time. It
// follows no link, enters no mount point, and reads directories near the top first. It isn't safe
// for concurrent use.
type SetIDSearch struct {
	Since   time.Time     // zero: any time
	Entries int           // how many entries of directories it looks at
	Time    time.Duration // how long it looks

	Found []SetIDFile
	Ended string // why it is not complete; "" if it is

	began time.Time
	seen  int
}

// A SetIDFile is a file that a SetIDSearch found.
type SetIDFile struct {
	Path    string
	Cleared bool // the bits were taken away
}

// maxSetID limits the files that a search finds.
const maxSetID = 100

// In searches a directory. With clear, it takes the bits away from files of this user without
// another hard link: another link may be a program of the system.
func (s *SetIDSearch) In(dir string, clear bool) {
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // nothing is there
	}
	defer unix.Close(top)
	if s.began.IsZero() {
		s.began = time.Now()
	}
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		if s.over(filepath.Join(dir, queue[0])) {
			return
		}
		queue = append(queue, s.read(top, dir, queue[0], clear)...)
	}
}

// over reports whether the search is over before a path.
func (s *SetIDSearch) over(path string) bool {
	switch {
	case s.Ended != "":
	case s.seen >= s.Entries:
		s.Ended = fmt.Sprintf("there are more than %d entries, and %s was not searched", s.Entries, path)
	case time.Since(s.began) > s.Time:
		s.Ended = fmt.Sprintf("there was not enough time, and %s was not searched", path)
	case len(s.Found) >= maxSetID:
		s.Ended = fmt.Sprintf("there are %d such files, and %s was not searched", maxSetID, path)
	}
	return s.Ended != ""
}

// read looks at the entries of a directory below the top, and returns the directories in it.
func (s *SetIDSearch) read(top int, dir, below string, clear bool) (dirs []string) {
	fd, err := openBelow(top, below, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		s.skip(filepath.Join(dir, below), err)
		return nil
	}
	file := os.NewFile(uintptr(fd), below)
	defer file.Close()
	for {
		entries, err := file.ReadDir(1024)
		for _, e := range entries {
			name := filepath.Join(below, e.Name())
			switch {
			case e.IsDir():
				dirs = append(dirs, name)
			case e.Type().IsRegular() && s.isSetID(fd, e.Name()):
				s.Found = append(s.Found, SetIDFile{filepath.Join(dir, name), clear && s.clear(top, name)})
			}
		}
		if s.seen += len(entries); err != nil || s.over(filepath.Join(dir, below)) {
			return dirs
		}
	}
}

// skip leaves out a directory that can't be opened, and remembers it if it may have files.
func (s *SetIDSearch) skip(path string, err error) {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV} {
		if errors.Is(err, gone) {
			return
		}
	}
	s.Ended = fmt.Sprintf("%s can't be read: %v", path, err)
}

// isSetID reports whether a file has the bits, and was made or changed since the time.
func (s *SetIDSearch) isSetID(at int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && s.matches(&st)
}

func (s *SetIDSearch) matches(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&setIDBits != 0 && !time.Unix(st.Ctim.Unix()).Before(s.Since.Add(-clockTick))
}

// clear takes the bits away from a file, and reports whether it did.
func (s *SetIDSearch) clear(top int, name string) bool {
	fd, err := openBelow(top, name, unix.O_PATH)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || !s.matches(&st) || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		return false
	}
	return unix.Chmod(procPath(fd), st.Mode&0o7777&^setIDBits) == nil
}

// openBelow opens a path below a directory, through no link and into no mount point.
func openBelow(top int, path string, flags uint64) (int, error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(top, path, how)
}
