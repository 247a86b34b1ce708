package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Request says for which run a clone is made, and of what.
type Request struct {
	Run      string // unique; names the clone
	Task     string
	Revision int
	Attempt  int
	Source   string   // a directory in the working tree of a repository
	Base     string   // the branch, tag or commit that it begins with; "": HEAD
	Resolved bool     // Source has no symbolic links; one that is there now was made after a check
	Copy     []string // files and directories below the top of the source, which git need not have; see CheckCopy
	After    *Clone   // the clone of an earlier run whose work this one goes on with; nil: none

	Received *Bundle // instead of Source and Base: the commit that another machine sent; nil: none
	Patch    []byte  // the earlier work that came with it
}

// maxListed limits the uncommitted files in a record.
const maxListed = 100

// Create makes the clone of a run at a commit of its source. There is never a clone without a
// record, and no directory is used twice.
//
// It is what git clone --shared makes, without the remote: a remote would be the source
// repository, and an agent could push to it by accident.
func (s Store) Create(ctx context.Context, q Request) (Clone, error) {
	if s.Dir == "" || s.Records == "" {
		return Clone{}, &RepositoryError{q.Source, "there is no directory for worktrees; set worktrees_dir"}
	}
	if q.Received != nil {
		return s.createReceived(ctx, q)
	}
	r, err := find(ctx, q.Source)
	if err != nil {
		return Clone{}, err
	}
	if q.Resolved && filepath.Join(r.top, r.prefix) != filepath.Clean(q.Source) {
		return Clone{}, &RepositoryError{q.Source, "it is a symbolic link now"}
	}
	commit, patch, err := s.start(ctx, r, q.Base, q.After)
	if err != nil {
		return Clone{}, err
	}
	dir, err := s.dirFor(r)
	if err != nil {
		return Clone{}, err
	}
	c := Clone{
		Run: q.Run, Task: q.Task, Revision: q.Revision, Attempt: q.Attempt, Branch: Branch(q.Task),
		Dir:    filepath.Join(dir, q.Run, cloneName(r.top)),
		Source: r.top, Objects: r.objects, Prefix: r.prefix, Commit: commit, Created: time.Now(),
	}
	for _, name := range q.Copy {
		c.Copied = append(c.Copied, filepath.Clean(name))
	}
	if err := s.list(ctx, r, &c); err != nil {
		return Clone{}, err
	}
	err = s.make(ctx, r, &c, patch)
	return c, err
}

// make makes the directory of a clone with its files, or nothing.
func (s Store) make(ctx context.Context, r repository, c *Clone, patch []byte) error {
	if err := s.makeDir(c); err != nil {
		return err
	}
	if err := s.fill(ctx, r, c, patch); err != nil {
		return errors.Join(err, s.Remove(*c))
	}
	return nil
}

// start returns the start commit of a clone, and the patch that it begins with.
func (s Store) start(ctx context.Context, r repository, base string, after *Clone) (commit string, patch []byte, err error) {
	if after != nil && after.Source == r.top {
		if patch, err = s.whole(ctx, *after); err == nil {
			return after.Commit, patch, nil
		}
	}
	commit, err = r.commit(ctx, base) // also if the patch is not there any more
	return commit, nil, err
}

// dirFor returns the directory of the clones without links. It refuses one inside the source:
// a clone would be part of the user's own working tree.
func (s Store) dirFor(r repository) (string, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory of worktrees: %w", err)
	}
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		return "", fmt.Errorf("find directory of worktrees: %w", err)
	}
	if dir == r.top || strings.HasPrefix(dir, r.top+"/") {
		return "", &RepositoryError{r.top, fmt.Sprintf("worktrees_dir %s is inside the repository; choose one outside", s.Dir)}
	}
	return dir, nil
}

// cloneName is the name of a clone's directory: the name of the source, for programs that show
// it.
func cloneName(top string) string {
	if name := filepath.Base(top); name != "/" && name != "." {
		return name
	}
	return "repository"
}

// makeDir makes the empty directory of a clone, and its record.
func (s Store) makeDir(c *Clone) error {
	if err := os.MkdirAll(s.Records, 0o700); err != nil {
		return fmt.Errorf("make directory of worktrees: %w", err)
	}
	if err := os.Mkdir(filepath.Dir(c.Dir), 0o700); err != nil {
		return fmt.Errorf("make directory of worktree: %w", err)
	}
	if err := os.Mkdir(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory of worktree: %w", err)
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return fmt.Errorf("make directory of worktree: %w", err)
	}
	c.Device, c.Inode = identity(info)
	if err := s.write(*c); err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Dir(c.Dir)))
	}
	return nil
}

// fill makes the repository of a clone, and its files, also the copied ones. No agent has been there yet.
func (s Store) fill(ctx context.Context, r repository, c *Clone, patch []byte) error {
	if err := r.lend(ctx, git{dir: c.Dir}, c.Dir, false, "--initial-branch="+c.Branch); err != nil {
		return err
	}
	clone := git{dir: c.Dir, gitDir: filepath.Join(c.Dir, ".git")}
	if _, err := clone.run(ctx, nil, "update-ref", "refs/heads/"+c.Branch, c.Commit); err != nil {
		return err
	}
	if _, err := clone.run(ctx, nil, "reset", "-q", "--hard"); err != nil {
		return err
	}
	if len(patch) > 0 {
		if _, err := clone.run(ctx, patch, applyArgs()...); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(c.Dir) // the commit may have a link where the source has the directory
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Join(".", c.Prefix), 0o700); err != nil { // without committed files it isn't there
		return &RepositoryError{filepath.Join(c.Source, c.Prefix), "HEAD has something else in its place: " + err.Error()}
	}
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return err
	}
	if at, err := filepath.EvalSymlinks(c.Cwd()); err != nil || at != filepath.Join(dir, c.Prefix) {
		return &RepositoryError{filepath.Join(c.Source, c.Prefix), "HEAD has a link in its place"}
	}
	return s.copyFiles(ctx, r, c)
}

// list finds what the clone won't have: uncommitted files and submodules.
func (s Store) list(ctx context.Context, r repository, c *Clone) error {
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return err
	}
	defer remove()
	lines, err := r.status(ctx, own, c.Commit)
	if err != nil {
		return err
	}
	if c.Before, err = r.state(ctx, lines); err != nil {
		return err
	}
	for _, line := range lines {
		if len(c.Uncommitted) == maxListed {
			c.Omitted++
		} else if len(line) > 3 {
			c.Uncommitted = append(c.Uncommitted, plain(line[3:]))
		}
	}
	submodules, err := own.submodules(ctx)
	for _, path := range submodules {
		c.Submodules = append(c.Submodules, plain(path))
	}
	return err
}

// submodules lists the submodules in the index.
func (g git) submodules(ctx context.Context) (paths []string, err error) {
	text, err := g.run(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	for _, entry := range split(text) {
		if path, ok := strings.CutPrefix(entry, "160000 "); ok {
			_, path, _ = strings.Cut(path, "\t")
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Branch returns the name of the branch of a task.
func Branch(task string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, task)
	return "mailboxd/" + cmp.Or(strings.TrimLeft(name, "-"), "task") // git refuses none of these
}
