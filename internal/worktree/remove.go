package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Remove removes a clone, and then its record. Links are removed, never followed.
func (s Store) Remove(c Clone) error {
	if err := removeAll(filepath.Dir(c.Dir)); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	if err := os.Remove(s.recordFile(c.Run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of worktree: %w", err)
	}
	return nil
}

// removeAll removes a directory also if directories in it are read-only, as those of Go's
// module cache are.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(path, 0o700) // WalkDir reads the directory afterwards
		}
		return nil
	}) // RemoveAll says what stays
	return os.RemoveAll(dir)
}

// Clones returns all clones with a record, and the first error of a record.
func (s Store) Clones() (all []Clone, failed error) {
	entries, err := os.ReadDir(s.Records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	for _, e := range entries {
		run, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(run, ".") {
			continue
		}
		c, ok, err := s.Open(run)
		if err != nil && failed == nil {
			failed = err
		}
		if ok {
			all = append(all, c)
		}
	}
	return all, failed
}

// Sweep removes the git directories and files that an earlier daemon left. No other operation
// may be in progress.
func (s Store) Sweep() error {
	entries, err := os.ReadDir(s.Records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "git-") || strings.HasPrefix(e.Name(), ".new-") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.Records, e.Name())))
		}
	}
	return err
}
