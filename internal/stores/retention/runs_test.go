package retention_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/retention"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

const day = 24 * time.Hour

// collector returns a collector of a new mailbox, whose ledger knows no task.
func collector(t *testing.T) retention.Collector {
	t.Helper()
	dir := t.TempDir()
	box, err := mailbox.Open(filepath.Join(dir, "box"))
	must(t, err)
	t.Cleanup(func() { must(t, box.Close()) })
	state, err := mailbox.OpenState(filepath.Join(dir, "state"), box.Path())
	must(t, err)
	t.Cleanup(func() { must(t, state.Close()) })
	memory, _, err := ledger.Open(state.LedgerPath())
	must(t, err)
	t.Cleanup(func() { must(t, memory.Close()) })
	return retention.Collector{Box: box, State: state, Ledger: memory}
}

func TestTheRunDirectoryOfWorkThatWasNotAppliedIsKept(t *testing.T) {
	now := time.Now()
	patch := &worktree.Work{KeptPatch: worktree.KeptPatch{File: "../runs/patch"}}
	works := map[envelope.ID]struct { // by the id of a task
		clone worktree.Clone
		kept  bool
	}{
		"not-applied":     {worktree.Clone{Work: patch}, true},
		"applied":         {worktree.Clone{Work: patch, Applied: now}, false},
		"on-a-branch":     {worktree.Clone{Work: patch, Branched: "c0ffee"}, false},
		"clone-removed":   {worktree.Clone{Work: patch, Removed: now}, false},
		"no-difference":   {worktree.Clone{Work: &worktree.Work{}}, false},
		"not-ended":       {worktree.Clone{}, false},
		"second-revision": {worktree.Clone{Work: patch, Revision: 2}, false},
		"of-another-task": {worktree.Clone{Work: patch, Task: "another"}, false},
	}
	for reason, keep := range map[string]retention.Policy{
		"too old":   {Runs: day},
		"too large": {MaxRunBytes: 1},
	} {
		c, dirs := collector(t), map[envelope.ID]string{}
		for id, work := range works {
			dirs[id] = makeRun(t, c.State, id, now.Add(-2*day))
			record(t, c.State, id, work.clone, now)
		}
		gone, err := c.Collect(t.Context(), keep, now, false)
		must(t, err)
		for id, work := range works {
			if _, err := os.Stat(dirs[id]); (err == nil) != work.kept {
				t.Errorf("the run directory of %s, which is %s: %v; want it kept: %t", id, reason, err, work.kept)
			}
		}
		if gone.Runs != len(works)-1 {
			t.Errorf("collected %+v of what is %s; want %d run directories", gone, reason, len(works)-1)
		}
	}
}

// makeRun makes the directory of the first run of a task, last changed at a time.
func makeRun(t *testing.T, state *mailbox.State, id envelope.ID, changed time.Time) string {
	t.Helper()
	dir, err := state.MakeRunDir(id, 1, 1)
	must(t, err)
	file := filepath.Join(dir, worktree.PatchFile)
	must(t, os.WriteFile(file, []byte("diff"), 0o600))
	must(t, os.Chtimes(file, changed, changed))
	must(t, os.Chtimes(dir, changed, changed))
	return dir
}

// record makes the record of a clone, of the first revision of a task unless the clone says
// otherwise.
func record(t *testing.T, state *mailbox.State, id envelope.ID, clone worktree.Clone, created time.Time) {
	t.Helper()
	records := worktree.RecordsIn(state.Path())
	must(t, os.MkdirAll(records, 0o700))
	clone.Run, clone.Task, clone.Revision, clone.Created = string(id), cmp.Or(clone.Task, string(id)), cmp.Or(clone.Revision, 1), created
	clone.Dir = filepath.Join(state.Path(), "clones", clone.Run, "tree")
	must(t, worktree.Store{Records: records}.Update(clone))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
