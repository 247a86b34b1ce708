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
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/testtools/fault"
)

// OwnTasks is the file for Append, beside AINL's tasks/openclaw_agent_tasks.jsonl
// (AINL-81).
const OwnTasks = tasksName + "/mailboxd.jsonl"

const (
	queuesName   = "queues"
	rejectedName = "rejected"
)

// Append appends a task line to tasks/mailboxd.jsonl below root, as any sender can. It
// returns the file, relative to root, and the offset of the line. It creates what is
// missing with modes 0700 and 0600. The line and its newline are one write. If another
// writer died within a line, a newline ends that line first.
func Append(root string, line []byte) (file string, offset int64, err error) {
	dir, err := openTasks(root)
	if err != nil {
		return "", 0, fmt.Errorf("append to %s: %w", filepath.Join(root, OwnTasks), err)
	}
	defer dir.Close()
	offset, err = appendLine(dir, filepath.Base(OwnTasks), line, false)
	if err != nil {
		return "", 0, fmt.Errorf("append to %s: %w", filepath.Join(root, OwnTasks), err)
	}
	return OwnTasks, offset, nil
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

// AppendCallback appends the line to the file at path, relative to the root (AINL-51). It
// creates missing directories with mode 0700, follows no symlink, and writes only to a
// regular file; see CheckCallback. The line is on disk when it returns nil.
func (b *Box) AppendCallback(path string, line []byte) error {
	err := CheckCallback(path)
	if err == nil {
		err = b.checkLinks(path)
	}
	if err == nil {
		err = b.append(path, line)
	}
	if err != nil {
		return fmt.Errorf("append callback %s: %w", path, err)
	}
	return nil
}

// CheckCallback says why nothing may be appended at path; nil if it is allowed (AINL-51).
// The path must be relative and clean, and outside tasks, results, inboxes and mailboxd's own
// files.
func CheckCallback(path string) error {
	if envelope.IsInboxFile(path) {
		return errors.New("must not be the inbox of a participant")
	}
	return checkAppended(path)
}

// checkAppended says why no program may have mailboxd append at path; nil if it may.
func checkAppended(path string) error {
	if path == "." || !filepath.IsLocal(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
		return errors.New("must be a plain path below the mailbox")
	}
	first, _, _ := strings.Cut(path, "/")
	if slices.Contains([]string{tasksName, resultsName, rejectedName, privateName}, first) {
		return fmt.Errorf("must not be in %s/", first)
	}
	return nil
}

// AppendQueue appends the line to queues/<name>.jsonl, like AppendCallback (AINL-50).
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

// CheckCallbackFile says why AppendCallback would fail at path in the current mailbox; nil
// if it wouldn't: a symlink or another non-regular file is in the way, or the file has a
// second name (AINL-51). AppendCallback creates missing files.
func (b *Box) CheckCallbackFile(path string) error {
	if err := b.checkAppend(path); err != nil {
		return err
	}
	return b.checkLinks(path)
}

// checkLinks refuses a file with hard links: another of its names could be an inbox, a result
// or a task file.
func (b *Box) checkLinks(path string) error {
	root, release := b.use()
	defer release()
	info, err := root.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil // the append reports it
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links), and one of them could be a file of mailboxd", path, stat.Nlink)
	}
	return nil
}

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
			return nil // missing; or the append reports the error
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

// CheckQueue says why a name can't be a queue's; nil if it can (AINL-50).
func CheckQueue(name string) error {
	if !queueName.MatchString(name) {
		return errors.New("must be 1 to 64 of A-Z a-z 0-9 . _ -")
	}
	return nil
}

// append appends a line to a file below the root. The line and all names on the path are on
// disk when it returns nil. An *UnfitError names an object in the place of the file or of a
// directory above it.
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

// obstacleAt returns an error for the first object on a path that isn't a directory, or a
// regular file at its end; nil for none.
func obstacleAt(root *os.Root, rootPath string, parts []string) error {
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		info, err := root.Lstat(name)
		if err != nil {
			return nil // the append reports it
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

// syncNames syncs the names in a directory, also old ones: their creator may have been
// killed before a sync.
func syncNames(dir *os.File) error {
	if err := dir.Sync(); err != nil {
		return err
	}
	fault.Synced("line-named", dir)
	return nil
}

// walk opens a directory step by step and never follows a symlink, even one created
// meanwhile. It creates missing directories, which are on disk when it returns nil.
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
		at.Close() // nil is allowed
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

// appendLine appends line and a newline in one write, and returns the offset of the line.
// It first ends an unfinished line, so that the two don't join.
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
	end, err := file.Seek(0, io.SeekCurrent) // the real offset of the append
	fault.Point("line-appended")
	if err == nil && sync {
		if err = file.Sync(); err == nil {
			fault.Synced("line-synced", file)
		}
	}
	return end - int64(len(line)) - 1, err
}

// endsWithin reports whether a regular file ends without a newline.
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
