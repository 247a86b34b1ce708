package mailbox

import (
	"errors"
	"fmt"
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

// RunFilesChanged returns when a RunFile was last added or removed; zero if there was none ever.
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

// Unread returns how many bytes of a file were not read at the last look.
func (t *Tail) Unread(file string) int64 {
	s := t.named[filepath.Base(file)]
	if s == nil {
		return 0
	}
	return s.seen.size - s.cursor.Offset
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

// EndLine ends the last line of the file of a run that is over: nobody will.
func (s *State) EndLine(f RunFile) error {
	file, err := s.root.OpenFile(f.file(), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString("\n")
		err = errors.Join(err, file.Close())
	}
	return wrapRunFile(f, err)
}

func wrapRunFile(f RunFile, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keep task file of run %s of %s: %w", f.Run, f.ID, err)
}
