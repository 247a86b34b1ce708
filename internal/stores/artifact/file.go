package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mailboxd/internal/stores/dirtree"
)

// Reasons why a file of a run is not published.
var (
	ErrLink      = errors.New("is a symbolic link, or lies behind one")
	ErrUnsettled = errors.New("was changed while it was copied")
)

// A FileError says that a file can't be opened, or isn't what it should be. Other errors are about
// the store.
type FileError struct{ Err error }

func (e *FileError) Error() string {
	if path, ok := errors.AsType[*fs.PathError](e.Err); ok {
		return path.Err.Error() // its reader named the file
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// PutFile keeps a regular file below a directory, by a path with no link in it, as Put does.
func (s *Store) PutFile(root *os.Root, name string, most int64) (e Entry, err error) {
	file, err := openBelow(root, name)
	if err != nil {
		return e, &FileError{err}
	}
	return s.putOpen(file, most)
}

// PutPath keeps the regular file at a path, as Put does.
func (s *Store) PutPath(path string) (e Entry, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		file, err = dirtree.Regular(file)
	}
	if err != nil {
		return e, &FileError{err}
	}
	return s.putOpen(file, s.file)
}

// putOpen keeps an open file, unless another program changes it meanwhile.
func (s *Store) putOpen(file *os.File, most int64) (e Entry, err error) {
	defer file.Close() // nothing was written
	before, err := file.Stat()
	if err != nil {
		return e, err
	}
	return s.put(file, most, func(copied int64) error {
		after, err := file.Stat()
		if err == nil && (copied != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
			err = &FileError{ErrUnsettled}
		}
		return err
	})
}

// openBelow opens a regular file below a directory. No element of its path is a link.
func openBelow(root *os.Root, name string) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%w: the path leads outside", fs.ErrPermission)
	}
	var last fs.FileInfo
	for i, char := range name + "/" {
		if char != '/' || strings.HasSuffix(name[:i], "/") || i == 0 {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, ErrLink
		}
		last = info
	}
	if !last.Mode().IsRegular() {
		return nil, dirtree.ErrNotRegular
	}
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		file, err = dirtree.Regular(file)
	}
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, last) {
		return nil, errors.Join(ErrUnsettled, file.Close())
	}
	return file, nil
}
