package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/internal/stores/dirtree"
)

// Remove removes a clone, and then its record. Links are removed, never followed.
func (s Store) Remove(c Clone) error {
	if err := dirtree.Remove(filepath.Dir(c.Dir)); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	if err := os.Remove(s.recordFile(c.Run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of worktree: %w", err)
	}
	return nil
}

// Clear removes the files of a clone. The record stays as long as there is a patch, so that the
// work can still be applied, or the directory of the run, so that its session can be continued.
func (s Store) Clear(c Clone, now time.Time) error {
	if !s.isUseful(c) {
		return s.Remove(c)
	}
	if err := dirtree.Remove(filepath.Dir(c.Dir)); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	c.Removed = now
	return s.Update(c)
}

// Forget removes the record of a clone without files if its patch and its run are gone too.
func (s Store) Forget(c Clone) error {
	if c.Removed.IsZero() || s.isUseful(c) {
		return nil
	}
	return os.Remove(s.recordFile(c.Run))
}

// isUseful reports whether the record of a clone without files is still of use.
func (s Store) isUseful(c Clone) bool {
	file := s.PatchFile(c)
	if file == "" && c.Work != nil && c.Work.Run != "" {
		file = filepath.Join(s.Records, c.Work.Run)
	}
	if file == "" {
		return false
	}
	_, err := os.Lstat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// Size returns the bytes of the files of a clone, as far as they can be read.
func (c Clone) Size() (bytes int64) {
	_ = filepath.WalkDir(c.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// Needless reports whether nobody needs the files of a clone any more: its work reached the
// source repository, a person discarded it, or there is none. The run has ended.
func (s Store) Needless(ctx context.Context, c Clone) bool {
	switch w := c.Work; {
	case !c.Applied.IsZero() || c.Branched != "" || !c.Discarded.IsZero():
		return true
	case w != nil:
		return w.File == "" && w.Problem == "" && len(w.Summary.Skipped) == 0
	}
	d, err := s.Diff(ctx, c) // the run never began, or nobody knows how it ended
	return err == nil && len(d.Patch) == 0 && len(d.Summary.Skipped) == 0
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
