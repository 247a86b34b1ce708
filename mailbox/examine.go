package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// An UnfitError says why a directory can't be used, or shouldn't be, and the remedy.
type UnfitError struct {
	Reason string // with the path
	Hint   string // a command, or an alternative
}

func (e *UnfitError) Error() string { return e.Reason + ": " + e.Hint }

// Examine checks the directories of the mailbox at path as Open does, and changes nothing.
// Missing directories are fine, because Open creates them. If the mailbox itself is
// missing, the error wraps fs.ErrNotExist.
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

// ServedBy reports whether a process holds the lock of a mailbox or a state directory, and
// its PID: 0 if it isn't visible from here. It takes no lock.
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
