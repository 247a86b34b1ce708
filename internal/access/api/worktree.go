package api

import (
	"mailboxd/internal/access/client"
	"mailboxd/internal/stores/worktree"
)

// maxFiles limits the changed files in an answer. The patch has all of them.
const maxFiles = 100

// worktree returns the clone that a run works in; nil for none. An unreadable record hides
// nothing else of the task.
func (b *Records) worktree(run string) *client.Worktree {
	records := worktree.Store{Records: worktree.RecordsIn(b.State.Path())}
	c, ok, err := records.Open(run)
	if err != nil {
		return &client.Worktree{Problem: err.Error()}
	}
	if !ok {
		return nil
	}
	w := &client.Worktree{
		Dir: c.Dir, Source: c.Source, Commit: c.Commit, Branch: c.Branch,
		Uncommitted: c.Uncommitted, Omitted: c.Omitted, Submodules: c.Submodules, NotCopied: c.NotCopied,
		Applied: c.Applied, Fetched: c.Branched, Discarded: c.Discarded, Removed: c.Removed,
	}
	if c.Work == nil {
		return w
	}
	s := c.Work.Summary
	w.Ended, w.Patch, w.Digest, w.Problem = true, records.PatchFile(c), c.Work.Digest, c.Work.Problem
	w.Changed, w.Added, w.Deleted, w.Skipped = len(s.Files), s.Added, s.Deleted, s.Skipped
	for _, f := range s.Files[:min(len(s.Files), maxFiles)] {
		w.Files = append(w.Files, client.ChangedFile(f))
	}
	return w
}
