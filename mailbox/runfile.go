package mailbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
)

// RunFilesName is the directory, in the state directory, with the task files of runs in
// sandboxes: only their runs can reach them. The directory above has nothing else, so changes of
// the ledger are no events for a watcher.
const RunFilesName = "sandboxes/tasks"

// KeptTasks is the task file of a run in its run directory, once all its lines are read.
const KeptTasks = "tasks.jsonl"

// A RunFile names the task file of one run: every line in it is of that run.
type RunFile struct {
	Run      string // its id
	ID       envelope.ID
	Revision int
	Attempt  int
}

// ParseRunFile returns the run of a file as lines and cursors name it.
func ParseRunFile(file string) (f RunFile, ok bool) {
	name, inside := strings.CutPrefix(file, RunFilesName+"/")
	parts := strings.SplitN(strings.TrimSuffix(name, taskSuffix), ".", 4)
	if !inside || len(parts) != 4 {
		return RunFile{}, false
	}
	id, wrongID := idOf(parts[3])
	revision, wrongRevision := strconv.Atoi(parts[1])
	attempt, wrongAttempt := strconv.Atoi(parts[2])
	f = RunFile{Run: parts[0], ID: id, Revision: revision, Attempt: attempt}
	return f, wrongID == nil && wrongRevision == nil && wrongAttempt == nil && f.file() == file
}

// file returns the name for lines and cursors.
func (f RunFile) file() string {
	return fmt.Sprintf("%s/%s.%d.%d.%s%s", RunFilesName, f.Run, f.Revision, f.Attempt, f.ID.Dir(), taskSuffix)
}

// Path returns the absolute path below a state directory.
func (f RunFile) Path(state string) string { return filepath.Join(state, f.file()) }

// RunFilesDir creates the directory of RunFiles below a state directory, and returns it.
func RunFilesDir(state string) (string, error) {
	dir := filepath.Join(state, RunFilesName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory for task files of sandboxes: %w", err)
	}
	return dir, nil
}

// IsRunFile reports whether a cursor is of a RunFile.
func (c Cursor) IsRunFile() bool { return strings.HasPrefix(c.Path, RunFilesName+"/") }

// RunTail is Box.Tail for the files of runs.
func (s *State) RunTail(cursors []Cursor, opts TailOptions) *Tail {
	opts.FromEnd = false
	dir := filepath.Join(s.path, RunFilesName)
	return newTail(RunFilesName, dir, func() (int, error) {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return fd, os.NewSyscallError("open", err)
	}, cursors, opts)
}

// RunFilesChanged returns when a RunFile was last added or removed; zero if there never was one.
func (s *State) RunFilesChanged() (time.Time, error) {
	var dir unix.Stat_t
	err := unix.Stat(filepath.Join(s.path, RunFilesName), &dir)
	switch {
	case errors.Is(err, unix.ENOENT):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("look at task files of sandboxes: %w", err)
	}
	return time.Unix(dir.Mtim.Unix()), nil
}

// Names returns the files of the last look, as their cursors name them.
func (t *Tail) Names() []string {
	names := make([]string, 0, len(t.listing.found))
	for _, f := range t.listing.found {
		names = append(names, t.prefix+"/"+f.name)
	}
	return names
}

// AllRead reports whether the last look found a file and read all of it. It is false for a file
// that could not be read.
func (t *Tail) AllRead(file string) bool {
	s := t.named[filepath.Base(file)]
	return s != nil && s.seen != stamp{} && s.seen.size <= s.cursor.Offset
}

// KeepRunFile moves the file of a run that is over, whose lines are read, to the run
// directory. It removes an empty file, and one without a run directory.
func (s *State) KeepRunFile(f RunFile) error {
	info, err := s.root.Lstat(f.file())
	if err == nil && info.Size() > 0 {
		err = s.root.Rename(f.file(), filepath.Join(runDir(f.ID, f.Revision, f.Attempt), KeptTasks))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return wrapRunFile(f, err)
		}
	}
	if err = s.root.Remove(f.file()); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return wrapRunFile(f, err)
}

// EndLine ends the last line of the file of a run that is over, because its writer is gone. It
// makes the file readable if the agent has made it unreadable for its user. It reports whether
// it changed the file.
func (s *State) EndLine(f RunFile) (changed bool, err error) {
	info, err := s.root.Lstat(f.file())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	const readWrite = 0o600
	if err == nil && info.Mode().Perm()&readWrite != readWrite {
		changed, err = true, s.root.Chmod(f.file(), readWrite)
	}
	if err != nil {
		return false, wrapRunFile(f, err)
	}
	file, err := s.root.OpenFile(f.file(), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return false, wrapRunFile(f, err)
	}
	ended, err := endLine(file)
	return changed || ended, wrapRunFile(f, errors.Join(err, file.Close()))
}

// endLine appends a newline to a file that doesn't end with one.
func endLine(file *os.File) (ended bool, err error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], size-1); err != nil || last[0] == '\n' {
		return false, err
	}
	_, err = file.WriteString("\n")
	return err == nil, err
}

func wrapRunFile(f RunFile, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keep task file of run %s of %s: %w", f.Run, f.ID, err)
}
