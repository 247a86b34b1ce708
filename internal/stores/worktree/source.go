package worktree

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxState limits the files of a source whose state is recorded.
const maxState = 1000

// status lists what in the working tree of a source differs from a commit, with the two letters of
// git status before each path. Ignored files aren't listed, and a new directory is one entry.
func (r repository) status(ctx context.Context, own git, commit string) ([]string, error) {
	if err := os.WriteFile(filepath.Join(own.gitDir, "HEAD"), []byte(commit+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := r.indexFor(ctx, own, commit); err != nil {
		return nil, err
	}
	text, err := own.run(ctx, nil, "-c", r.exclude(), "status", "--porcelain", "-z", "--ignore-submodules=all", "--untracked-files=normal", "--no-renames")
	if err != nil {
		return nil, err
	}
	return split(text), nil
}

// state describes HEAD and each file that status lists, by its size and time.
func (r repository) state(ctx context.Context, lines []string) (map[string]string, error) {
	head, err := r.head(ctx)
	if err != nil {
		return nil, err
	}
	state := map[string]string{"HEAD": head}
	for _, line := range lines {
		if len(line) <= 3 || len(state) > maxState {
			continue
		}
		words := line[:2]
		if info, err := os.Lstat(filepath.Join(r.top, line[3:])); err == nil && !info.IsDir() {
			words += fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano())
		}
		state["./"+plain(line[3:])] = words
	}
	return state, nil
}

// look describes the source of a clone anew.
func (s Store) look(ctx context.Context, c *Clone) error {
	r, err := find(ctx, c.Source)
	if err != nil {
		return err
	}
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return err
	}
	defer remove()
	lines, err := r.status(ctx, own, c.Commit)
	if err != nil {
		return err
	}
	c.Before, err = r.state(ctx, lines)
	return err
}

// SourceChanges lists what changed in the source of a clone since the clone was made: files, or
// HEAD. It is empty if mailboxd itself applied work there meanwhile, since nobody can tell the two
// apart, and for clones without a description of the source. Ignored files don't count.
func (s Store) SourceChanges(ctx context.Context, c Clone) ([]string, error) {
	if c.Before == nil || s.appliedSince(c.Source, c.Created) {
		return nil, nil
	}
	now := c
	if err := s.look(ctx, &now); err != nil {
		return nil, err
	}
	var changed []string
	names := maps.Clone(c.Before)
	maps.Copy(names, now.Before)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if c.Before[name] != now.Before[name] {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// appliedSince reports whether work was applied to a source since a time.
func (s Store) appliedSince(source string, since time.Time) bool {
	all, _ := s.Clones() // those that can be read
	return slices.ContainsFunc(all, func(c Clone) bool { return c.Source == source && c.Applied.After(since) })
}
