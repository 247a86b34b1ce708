package mailbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

// ourTasks is the file that Append writes to, the neighbour of AINL's
// tasks/openclaw_agent_tasks.jsonl (AINL-81).
const ourTasks = tasksName + "/mailboxd.jsonl"

const (
	queuesName   = "queues"
	rejectedName = "rejected"
)

// Append appends a task line to tasks/mailboxd.jsonl below root, as any sender
// would, and says where it stands: the file, relative to root, and the line's
// offset in it. It makes what is missing with modes 0700 and 0600. The line is
// written at once with its newline, and starts on a line of its own even when
// another writer died in the middle of one.
func Append(root string, line []byte) (file string, offset int64, err error) {
	dir, err := openTasks(root)
	if err != nil {
		return "", 0, fmt.Errorf("append to %s: %w", filepath.Join(root, ourTasks), err)
	}
	defer dir.Close()
	offset, err = appendLine(dir, filepath.Base(ourTasks), line, false)
	if err != nil {
		return "", 0, fmt.Errorf("append to %s: %w", filepath.Join(root, ourTasks), err)
	}
	return ourTasks, offset, nil
}

func openTasks(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(tasksName, 0o700); err != nil {
		return nil, err
	}
	return root.Open(tasksName)
}

// AppendCallback appends the line to the file at path, relative to the root
// (AINL-51). Directories that are missing are made with mode 0700. It goes
// through no symlink, and only to a regular file; see CheckCallback. The line
// is on disk when it returns nil.
func (b *Box) AppendCallback(path string, line []byte) error {
	err := CheckCallback(path)
	if err == nil {
		err = b.append(path, line)
	}
	if err != nil {
		return fmt.Errorf("append callback %s: %w", path, err)
	}
	return nil
}

// CheckCallback says why nothing may be appended at path, or nil (AINL-51): it
// has to be relative and clean, and where neither tasks, results nor our own
// records are.
func CheckCallback(path string) error {
	if path == "." || !filepath.IsLocal(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
		return errors.New("must be a plain path below the mailbox")
	}
	first, _, _ := strings.Cut(path, "/")
	if slices.Contains([]string{tasksName, resultsName, rejectedName, privateName}, first) {
		return fmt.Errorf("must not be in %s/", first)
	}
	return nil
}

// AppendQueue appends the line to queues/<name>.jsonl, like AppendCallback
// (AINL-50).
func (b *Box) AppendQueue(name string, line []byte) error {
	err := CheckQueue(name)
	if err == nil {
		err = b.append(queuesName+"/"+name+taskSuffix, line)
	}
	if err != nil {
		return fmt.Errorf("append to queue %s: %w", name, err)
	}
	return nil
}

// CheckCallbackFile says why AppendCallback could not append at path as the
// mailbox is now, or nil: it leads through a symlink, or to something that is no
// regular file (AINL-51). What is missing would be made.
func (b *Box) CheckCallbackFile(path string) error { return b.checkAppend(path) }

// CheckQueueFile is CheckCallbackFile for AppendQueue.
func (b *Box) CheckQueueFile(name string) error {
	return b.checkAppend(queuesName + "/" + name + taskSuffix)
}

func (b *Box) checkAppend(path string) error {
	root, release := b.use()
	defer release()
	for end := 0; end < len(path); end++ {
		step := strings.IndexByte(path[end:], '/')
		if end += step; step < 0 {
			end = len(path)
		}
		info, err := root.Lstat(path[:end])
		switch {
		case err != nil:
			return nil // it is missing; or who appends finds out why it cannot
		case info.Mode().Type() == fs.ModeSymlink:
			return fmt.Errorf("leads through %s, which is a symlink", path[:end])
		case end < len(path) && !info.IsDir():
			return fmt.Errorf("leads through %s, which is not a directory", path[:end])
		case end == len(path) && !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckQueue says why there cannot be a queue of that name, or nil (AINL-50).
func CheckQueue(name string) error {
	if !queueName.MatchString(name) {
		return errors.New("must be 1 to 64 of A-Z a-z 0-9 . _ -")
	}
	return nil
}

// append puts a line at the end of a file below the root. When it returns nil
// the line is on disk, and so are the names that lead to it. An *UnfitError names
// an object that lies in the place of the file or of a directory above it.
func (b *Box) append(path string, line []byte) error {
	root, release := b.use()
	defer release()
	parts := strings.Split(path, "/")
	err := appendBelow(root, parts, line)
	if err != nil {
		if obstacle := obstacleAt(root, b.path, parts); obstacle != nil {
			return obstacle
		}
	}
	return err
}

// obstacleAt returns the first object on the way to a file that is not what belongs
// there: a directory, or in the end a regular file; nil when there is none.
func obstacleAt(root *os.Root, rootPath string, parts []string) error {
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		info, err := root.Lstat(name)
		if err != nil {
			return nil // the error of the append says it
		}
		path, want := filepath.Join(rootPath, name), "a directory"
		if i == len(parts)-1 {
			want = "a regular file"
		}
		if i < len(parts)-1 && !info.IsDir() || i == len(parts)-1 && !info.Mode().IsRegular() {
			return &UnfitError{path + " is not " + want, fmt.Sprintf("mv %s %s.old", path, path)}
		}
	}
	return nil
}

func appendBelow(root *os.Root, parts []string, line []byte) error {
	dir, err := walk(root, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err = appendLine(dir, parts[len(parts)-1], line, true); err != nil {
		return err
	}
	return syncNames(dir)
}

// syncNames makes durable which names are in a directory: also those that were
// there, for whoever made them may have been killed before they were on disk.
func syncNames(dir *os.File) error {
	if err := dir.Sync(); err != nil {
		return err
	}
	fault.Synced("line-named", dir)
	return nil
}

// walk opens a directory step by step, so that it never follows a symlink, not
// even one that is put there meanwhile. It makes the steps that are missing,
// on disk when it returns nil.
func walk(root *os.Root, parts []string) (*os.File, error) {
	at, err := root.Open(".")
	for _, name := range parts {
		if err != nil {
			return nil, err
		}
		from := at
		if at, err = step(from, name); err == nil {
			err = syncNames(from)
		}
		from.Close() // nothing was written
	}
	if err != nil {
		at.Close() // of nil is fine
		return nil, err
	}
	return at, nil
}

func step(from *os.File, name string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_RDONLY | unix.O_CLOEXEC
	fd, err := unix.Openat(int(from.Fd()), name, flags, 0)
	if errors.Is(err, unix.ENOENT) {
		if err := unix.Mkdirat(int(from.Fd()), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, &os.PathError{Op: "mkdirat", Path: name, Err: err}
		}
		fd, err = unix.Openat(int(from.Fd()), name, flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "openat", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// appendLine writes line and a newline at the end of the file, at once, and
// returns where the line begins. A line that somebody left unfinished there is
// finished first, so that nothing is glued to it.
func appendLine(dir *os.File, name string, line []byte, sync bool) (offset int64, err error) {
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_CREAT | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0o600)
	if err != nil {
		return 0, &os.PathError{Op: "openat", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, file.Close()) }()
	unfinished, err := endsWithin(file)
	if err != nil {
		return 0, err
	}
	text := append(bytes.Clone(line), '\n')
	if unfinished {
		text = append([]byte{'\n'}, text...)
	}
	if _, err := file.Write(text); err != nil {
		return 0, err
	}
	end, err := file.Seek(0, io.SeekCurrent) // where the append really went
	fault.Point("line-appended")
	if err == nil && sync {
		if err = file.Sync(); err == nil {
			fault.Synced("line-synced", file)
		}
	}
	return end - int64(len(line)) - 1, err
}

// endsWithin reports whether the file ends within a line; it has to be regular.
func endsWithin(file *os.File) (bool, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a regular file", info.Name())
	case info.Size() == 0:
		return false, nil
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}
