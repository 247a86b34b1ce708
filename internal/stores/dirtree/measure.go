package dirtree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Size says how large a tree is, and when it last changed.
type Size struct {
	Bytes   int64 // of its files and directories
	Changed time.Time
}

// MeasureIn measures a file or a directory inside a root. What this user can't read counts as
// empty. The error wraps fs.ErrNotExist when there is none.
func MeasureIn(root *os.Root, path string) (s Size, err error) {
	c, err := OpenIn(root, Options{})
	if err != nil {
		return s, err
	}
	defer c.Close()
	dirs := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	for _, dir := range dirs[:len(dirs)-1] {
		if err := c.Enter(dir); err != nil {
			return s, err
		}
	}
	name := dirs[len(dirs)-1]
	isDir, err := s.add(c.FD(), name)
	if err != nil {
		return s, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if isDir {
		err = s.directory(c, name)
	}
	return s, err
}

// add adds an entry of a directory.
func (s *Size) add(at int, name string) (isDir bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	s.Bytes += st.Size
	if changed := time.Unix(st.Mtim.Unix()); changed.After(s.Changed) {
		s.Changed = changed
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// directory adds what is in a directory of the current one.
func (s *Size) directory(c *Cursor, name string) error {
	if err := c.Enter(name); err != nil {
		return unreadable(err)
	}
	var dirs []string
	err := c.each(func(name string) {
		if isDir, err := s.add(c.FD(), name); err == nil && isDir { // the entry may be removed meanwhile
			dirs = append(dirs, name)
		}
	})
	for _, dir := range dirs {
		if err == nil {
			err = s.directory(c, dir)
		}
	}
	return errors.Join(err, c.Leave())
}

// unreadable returns nil for the error of a directory that counts as empty.
func unreadable(err error) error {
	for _, known := range []error{fs.ErrPermission, fs.ErrNotExist, unix.EXDEV, unix.ENOTDIR, unix.ELOOP} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}
