package retention

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

// collectClones removes the clones of settled tasks whose work was applied or discarded, that have
// no work, or that are too old.
func (c Collector) collectClones(ctx context.Context, old, now time.Time, dry bool, gone *collection) error {
	s := worktree.Store{Records: worktree.RecordsIn(c.State.Path())}
	clones, failed := s.Clones()
	needed := map[string]bool{} // directories, each of which may be the clone of several runs
	var needless []worktree.Clone
	for _, clone := range clones {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !clone.Removed.IsZero() {
			if !dry {
				failed = errors.Join(failed, s.Forget(clone))
			}
			continue
		}
		settled, err := c.settled(ctx, mailbox.Kept{ID: envelope.ID(clone.Task), Revision: clone.Revision, Changed: clone.Created})
		if err != nil {
			return err
		}
		if !settled || !clone.Created.Before(old) && !s.Needless(ctx, clone) {
			needed[clone.Dir] = true
			continue
		}
		needless = append(needless, clone)
	}
	for _, clone := range needless {
		if !needed[clone.Dir] {
			clearClone(s, clone, now, dry, gone)
		}
	}
	return failed
}

// clearClone removes the files of a clone.
func clearClone(s worktree.Store, clone worktree.Clone, now time.Time, dry bool, gone *collection) {
	size := clone.Size()
	if !dry {
		if err := s.Clear(clone, now); err != nil {
			gone.leave(filepath.Dir(clone.Dir), err)
			return
		}
	}
	gone.Bytes += size
	gone.Clones++
}

// A revision of a task.
type revision struct {
	id     envelope.ID
	number int
}

// unapplied returns the revisions with work that was neither applied nor discarded, in clones that are kept:
// the patch is in a run directory.
func (c Collector) unapplied() (map[revision]bool, error) {
	clones, err := worktree.Store{Records: worktree.RecordsIn(c.State.Path())}.Clones()
	kept := map[revision]bool{}
	for _, clone := range clones {
		if clone.Removed.IsZero() && clone.Work != nil && clone.Work.File != "" && clone.Applied.IsZero() && clone.Branched == "" && clone.Discarded.IsZero() {
			kept[revision{envelope.ID(clone.Task), clone.Revision}] = true
		}
	}
	return kept, err
}
