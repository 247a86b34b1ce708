package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// An UnfitError says why a directory cannot serve, or had better not, and what
// mends it.
type UnfitError struct {
	Reason string // names the path
	Hint   string // a command, or what else to do
}

func (e *UnfitError) Error() string { return e.Reason + ": " + e.Hint }

// Examine judges the directories of the mailbox at path as Open does, and
// changes nothing. What is missing is fine, as Open would make it; but that the
// mailbox itself is missing is an error that wraps fs.ErrNotExist.
func Examine(path string) (warnings []*UnfitError, err error) {
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("examine mailbox: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("examine mailbox: %w", err)
	}
	defer root.Close()
	if err := refuseSystemDirectory(root, path); err != nil {
		return nil, fmt.Errorf("examine mailbox: %w", err)
	}
	if warnings, err = checkDirectories(root, path); err != nil {
		return nil, fmt.Errorf("examine mailbox: %w", err)
	}
	return warnings, nil
}

// ServedBy reports whether somebody holds the lock of a mailbox, or of its
// state directory, and which process that is: 0 when it cannot be seen from
// here. It takes no lock.
func ServedBy(path string) (pid int, served bool, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return 0, false, fmt.Errorf("find who serves %s: %w", path, err)
	}
	pid, served, err = holder(dir)
	if err = errors.Join(err, dir.Close()); err != nil {
		return 0, false, fmt.Errorf("find who serves %s: %w", path, err)
	}
	return pid, served, nil
}
