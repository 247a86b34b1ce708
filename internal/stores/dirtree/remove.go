package dirtree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A LeftError says what could not be removed.
type LeftError struct {
	Count int    // entries that are left, without the directories above them
	Path  string // of one of them
	Cause error
}

func (e *LeftError) Error() string {
	if e.Count == 1 {
		return fmt.Sprintf("%s could not be removed: %v", e.Path, e.Cause)
	}
	return fmt.Sprintf("%d entries could not be removed; one is %s: %v", e.Count, e.Path, e.Cause)
}

func (e *LeftError) Unwrap() error { return e.Cause }

// RemoveIn removes a file, a link or a whole directory inside a root. It goes on after an entry
// that can't be removed; the error is then a *LeftError. It makes directories of this user
// writable first. A missing path is no error.
func RemoveIn(root *os.Root, path string) error {
	c, err := OpenIn(root, Options{Unlock: true})
	if err != nil {
		return err
	}
	return remove(c, filepath.ToSlash(filepath.Clean(path)), "")
}

// Remove is RemoveIn for a path of its own.
func Remove(path string) error {
	parent, name := filepath.Split(filepath.Clean(path))
	c, err := Open(filepath.Clean(parent), Options{Unlock: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return remove(c, name, parent)
}

// Empty removes what is in a directory, except what keep reports, and leaves the directory.
func Empty(dir string, keep func(name string) bool) error {
	c, err := Open(dir, Options{Unlock: true})
	if err != nil {
		return err
	}
	r := remover{at: c, prefix: dir + "/"}
	defer c.Close()
	if err := addRights(c.FD(), unix.S_IRWXU); err != nil {
		r.left(".", err)
	}
	r.empty(keep)
	return r.err()
}

// remove removes a path below the place of a cursor, which it closes.
func remove(c *Cursor, path, prefix string) error {
	defer c.Close()
	r := remover{at: c, prefix: prefix}
	dirs := strings.Split(path, "/")
	name := dirs[len(dirs)-1]
	for _, dir := range dirs[:len(dirs)-1] {
		if err := c.Enter(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if r.unlink(name) {
		r.directory(name)
	}
	return r.err()
}

// A remover removes entries of a tree and counts those that are left.
type remover struct {
	at     *Cursor
	prefix string // of the paths in the error
	failed LeftError
	lost   error // the way back to a directory; ends the removal
}

func (r *remover) err() error {
	if r.failed.Count == 0 {
		return r.lost
	}
	failed := r.failed
	return errors.Join(&failed, r.lost)
}

func (r *remover) left(name string, err error) {
	if r.failed.Count == 0 {
		r.failed.Path, r.failed.Cause = r.prefix+r.at.Path(name), withoutPath(err)
	}
	r.failed.Count++
}

// withoutPath returns the cause of an error that names a path again.
func withoutPath(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		err = named.Err
	}
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("another file system is mounted there: %w", err)
	}
	return err
}

// unlink removes a name of the current directory. It reports true for a directory, which stays.
func (r *remover) unlink(name string) (isDir bool) {
	err := unix.Unlinkat(r.at.FD(), name, 0)
	switch {
	case errors.Is(err, unix.EISDIR):
		return true
	case err != nil && !errors.Is(err, unix.ENOENT):
		r.left(name, err)
	}
	return false
}

// directory removes a directory of the current one.
func (r *remover) directory(name string) {
	before := r.failed.Count
	switch err := r.at.Enter(name); {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		r.left(name, err)
		return
	}
	r.empty(nil)
	if r.lost != nil {
		return
	}
	if r.lost = r.at.Leave(); r.lost != nil {
		return
	}
	err := unix.Unlinkat(r.at.FD(), name, unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, unix.ENOENT) && r.failed.Count == before {
		r.left(name, err)
	}
}

// empty removes what is in the current directory.
func (r *remover) empty(keep func(name string) bool) {
	var dirs []string
	err := r.at.each(func(name string) {
		if (keep == nil || !keep(name)) && r.unlink(name) {
			dirs = append(dirs, name)
		}
	})
	if err != nil {
		r.left(".", err)
	}
	for _, name := range dirs {
		if r.directory(name); r.lost != nil {
			return
		}
	}
}
