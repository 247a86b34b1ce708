package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// EarlierFile is the file of a patch in the directory of a run that continues in the clone of
// another: the work there that had been applied before.
const EarlierFile = "earlier.patch"

// Continue makes the clone of an earlier run that of another one: the same directory, as it is. The
// work of the run begins with what of the earlier work was applied. A directory that was removed is
// made again, at the same path and with the earlier work, but without ignored files that nobody copied.
func (s Store) Continue(ctx context.Context, q Request, earlier Clone, runDir string) (Clone, error) {
	last, applied, err := s.sharing(earlier)
	if err != nil {
		return Clone{}, err
	}
	c := last
	c.Run, c.Task, c.Revision, c.Attempt = q.Run, q.Task, q.Revision, q.Attempt
	c.Owner, c.Branch, c.Created = cmp.Or(last.Owner, last.Run), Branch(q.Task), time.Now()
	c.Work, c.Applied, c.Branched, c.Discarded, c.Removed, c.Earlier = nil, time.Time{}, "", time.Time{}, time.Time{}, nil
	if applied != nil {
		patch, err := s.whole(ctx, *applied)
		if err != nil {
			return Clone{}, err
		}
		kept, err := s.keep(filepath.Join(runDir, EarlierFile), patch)
		if err != nil {
			return Clone{}, err
		}
		c.Earlier = &kept
	}
	if err := s.look(ctx, &c); err != nil {
		return Clone{}, err
	}
	if last.Removed.IsZero() {
		return c, cmp.Or(last.check(), s.write(c))
	}
	c.Prepared = false
	return c, s.remake(ctx, &c, last)
}

// CanContinue returns why no other run can continue in the clone of a run, or nil.
func (s Store) CanContinue(c Clone) error {
	last, _, err := s.sharing(c)
	if err != nil {
		return err
	}
	for _, of := range []Clone{c, last} {
		if !of.Discarded.IsZero() {
			return fmt.Errorf("the work of task %s in the worktree was discarded, so nothing goes on there; send the task anew: it gets a worktree of its own", of.Task)
		}
	}
	if !last.Removed.IsZero() {
		return nil
	}
	return last.check()
}

// sharing returns the last clone in the directory of a clone, and the last one whose work there was
// applied; nil for none.
func (s Store) sharing(c Clone) (last Clone, applied *Clone, err error) {
	all, err := s.Clones()
	last = c
	for _, other := range all {
		if other.Dir != c.Dir {
			continue
		}
		if !other.Created.Before(last.Created) {
			last = other
		}
		if !other.Applied.IsZero() && (applied == nil || other.Applied.After(applied.Applied)) {
			applied = &other
		}
	}
	return last, applied, err
}

// remake makes a directory that was removed again, for another run.
func (s Store) remake(ctx context.Context, c *Clone, last Clone) error {
	r, err := c.repository(ctx)
	if err != nil {
		return err
	}
	patch, err := s.whole(ctx, last)
	if err != nil {
		return err
	}
	return s.make(ctx, r, c, patch)
}

// whole returns the difference between the commit of a clone and its files when the run ended.
func (s Store) whole(ctx context.Context, c Clone) ([]byte, error) {
	patch, err := s.Patch(c)
	if err != nil && !errors.Is(err, ErrNoPatch) {
		return nil, err
	}
	earlier, err := s.read(c.Earlier)
	if err != nil || len(earlier) == 0 || len(patch) == 0 {
		return append(earlier, patch...), err
	}
	r, err := c.repository(ctx)
	if err != nil {
		return nil, err
	}
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return nil, err
	}
	defer remove()
	if _, err := s.begin(ctx, own, c); err != nil {
		return nil, err
	}
	if _, err := own.run(ctx, patch, applyArgs("--cached")...); err != nil {
		return nil, err
	}
	return own.runAtMost(ctx, MaxPatch, diffArgs(c.Commit, "--patch", "--binary", "--full-index")...)
}

// begin puts the start of a clone's work into an index of our own, and returns its commit or tree.
func (s Store) begin(ctx context.Context, own git, c Clone) (string, error) {
	if _, err := own.run(ctx, nil, "read-tree", c.Commit); err != nil {
		return "", err
	}
	earlier, err := s.read(c.Earlier)
	if err != nil || len(earlier) == 0 {
		return c.Commit, err
	}
	if _, err := own.run(ctx, earlier, applyArgs("--cached")...); err != nil {
		return "", err
	}
	tree, err := own.run(ctx, nil, "write-tree")
	return string(bytes.TrimSpace(tree)), err
}

// EarlierPatch returns the work that was applied before a run continued in the clone; nil for none.
func (s Store) EarlierPatch(c Clone) ([]byte, error) { return s.read(c.Earlier) }
