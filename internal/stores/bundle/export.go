package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
	"mailboxd/internal/stores/worktree"
)

// A Source is where the evidence of a run is.
type Source struct {
	Ledger    *ledger.Reader
	Mailbox   string // its id
	Worktrees worktree.Store
	Signer    seal.Signer
	Keys      []seal.Successor // of the mailbox
}

// An Exported says what is in a bundle that was written.
type Exported struct {
	Run   string `json:"run"`
	Tasks int    `json:"tasks"` // revisions
	Open  int    `json:"open"`  // of them, that are not done
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Export writes the evidence of a run to a path where there is no file yet. A run is named by its run_id, or by one of
// its tasks; without such a run, the error wraps ledger.ErrUnknown. All of it is one moment of the ledger.
func Export(ctx context.Context, from Source, run string, leaveOut []string, path string) (done Exported, err error) {
	if err := checkRedacted(leaveOut); err != nil {
		return done, err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("export to %s: there is a file already; choose another name", path)
	}
	s, err := newSpool(filepath.Dir(path))
	if err != nil {
		return done, fmt.Errorf("export to %s: %w", path, err)
	}
	defer s.file.Close()
	x := &exporter{Source: from, spool: s, leaveOut: leaveOut}
	err = from.Ledger.Snapshot(ctx, func(at *ledger.Reader) error {
		x.Ledger = at
		return x.gather(ctx, run)
	})
	if err == nil {
		err = x.finish(ctx)
	}
	if err == nil {
		done = x.done()
		done.Bytes, err = s.linkTo(ctx, path)
	}
	if err != nil {
		return done, fmt.Errorf("export run %s: %w", run, err)
	}
	return done, nil
}

// An exporter gathers the files of one bundle.
type exporter struct {
	Source
	*spool
	leaveOut []string
	run      string
	rows     []task.Task
	time     time.Time // of the latest event
}

func (x *exporter) leavesOut(what string) bool { return slices.Contains(x.leaveOut, what) }

// gather adds all files but the manifest and its statement.
func (x *exporter) gather(ctx context.Context, run string) (err error) {
	if x.run, x.rows, err = x.Ledger.InRun(ctx, run); err != nil {
		return err
	}
	for _, add := range []func(context.Context) error{x.addEvents, x.addTasks, x.addApprovals, x.addMessages} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	replaced := slices.DeleteFunc(slices.Clone(x.Keys), func(s seal.Successor) bool { return s.Replaces == "" })
	return addLines(x.spool, keysName, x.time, replaced)
}

// addTasks adds the requests, the results and the patches.
func (x *exporter) addTasks(ctx context.Context) error {
	for i, row := range x.rows {
		raw, err := x.Ledger.Raw(ctx, row.Seq)
		if err == nil {
			err = x.addBody(base("requests", i+1), ".json", row.Received, raw, x.leavesOut(Input))
		}
		if err != nil && !errors.Is(err, ledger.ErrUnknown) { // retention removed it
			return err
		}
		result, err := x.Ledger.Result(ctx, row.Seq)
		if err == nil && row.State == task.Done {
			err = x.addBody(base("results", i+1), ".json", row.Finished, result, x.leavesOut(Output))
		}
		if err != nil && !errors.Is(err, ledger.ErrUnknown) {
			return err
		}
		if err := x.addPatches(ctx, row, i+1); err != nil {
			return err
		}
	}
	return nil
}

// addPatches adds the work that runs of a task left in their worktrees. A patch that was removed or changed since is
// left out: an event has its digest.
func (x *exporter) addPatches(ctx context.Context, row task.Task, number int) error {
	runs, err := x.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return err
	}
	for _, run := range runs {
		clone, found, err := x.Worktrees.Open(run.ID)
		if err != nil || !found {
			continue
		}
		text, err := x.Worktrees.Patch(clone)
		if err != nil {
			continue
		}
		if err := x.addBody(base("patches", number, run.Attempt), ".patch", run.Finished, text, x.leavesOut(Output)); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) addApprovals(ctx context.Context) error {
	var all []approval
	for _, row := range x.rows {
		list, err := x.Ledger.Approvals(ctx, row.Seq)
		if err != nil {
			return err
		}
		for _, c := range list {
			a := approvalOf(x.Mailbox, row, c)
			if a.Plan = plain(a.Plan); x.leavesOut(Input) || x.leavesOut(Output) && c.Stage == envelope.ApprovalTool {
				a.Plan = ""
			}
			all = append(all, a)
		}
	}
	if err := fewDecisions(all); err != nil {
		return err
	}
	return addLines(x.spool, approvalsName, x.time, all)
}

// fewDecisions refuses more decisions than Verify reads.
func fewDecisions(all []approval) error {
	decided := 0
	for _, a := range all {
		if a.isDecided() {
			decided++
		}
	}
	if decided > maxApprovals {
		return fmt.Errorf("export %d decisions of persons: a bundle has at most %d; export the tasks of the run one by one", decided, maxApprovals)
	}
	return nil
}

// plain returns a text, or "" if JSON can't have it.
func plain(text string) string {
	if strings.ToValidUTF8(text, "") != text {
		return ""
	}
	return text
}

// finish adds the manifest and the statement about it, and brings all files in order.
func (x *exporter) finish(ctx context.Context) error {
	byName := func(a, b entry) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(x.entries, byName)
	m := Manifest{Format: format, Run: x.run, Mailbox: x.Mailbox, Time: x.time, Redacted: x.leaveOut, Tasks: []Task{}, Files: []File{}}
	for _, row := range x.rows {
		m.Tasks = append(m.Tasks, Task{row.ID, row.Revision, row.Agent, row.Requester, row.State, row.Status})
	}
	for _, e := range x.entries {
		m.Files = append(m.Files, fileOf(e))
	}
	text, err := encode(m)
	switch {
	case err != nil:
		return err
	case len(text) > maxManifest:
		return fmt.Errorf("its manifest has more than %d MiB", maxManifest>>20)
	}
	if err := x.addBytes(manifestName, x.time, text); err != nil {
		return err
	}
	signed, err := sign(ctx, x.Signer, m, x.entries[len(x.entries)-1].digest())
	if err != nil {
		return err
	}
	if err := x.addBytes(statementName, x.time, signed); err != nil {
		return err
	}
	slices.SortFunc(x.entries, byName)
	return nil
}

// done says what the bundle has, without its size.
func (x *exporter) done() Exported {
	done := Exported{Run: x.run, Tasks: len(x.rows), Files: len(x.entries)}
	for _, row := range x.rows {
		if row.State != task.Done {
			done.Open++
		}
	}
	return done
}
