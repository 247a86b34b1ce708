package exchange

import (
	"context"
	"os"
	"path/filepath"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// HoldRecovered holds a task that may have run before the ledger was lost: only a person can
// know. A task with a result file is held for this reason alone, whatever its verdict, until a
// look adopts the result (dispatch, adoptPlaced). That happens when all revisions of its id are
// read.
func (ac *Acceptor) HoldRecovered(t envelope.Task, v task.Verdict) task.Verdict {
	if !ac.Lost || t.ID == "" || v.Findings.Kind().IsLineError() {
		return v
	}
	if !v.Admit && ac.Box.HasResult(t.ID) {
		v = task.Verdict{Admit: true, Findings: v.Findings.Warnings(), Terms: task.Terms{Deadline: t.Deadline}}
	}
	return core.Held(v, task.Recovered)
}

// RecoveryDone ends the holds as recovered, once all lines that existed at the loss of the
// ledger are read again.
func (ac *Acceptor) RecoveryDone(ctx context.Context) error {
	if !ac.Lost {
		return nil
	}
	err := ac.Writer.Update(ctx, func(tx *store.Transaction) error {
		if err := tx.MarkRecovered(); err != nil {
			return err
		}
		return tx.Log(store.Event(task.Task{}, task.KindLedgerRecovered, nil))
	})
	if err != nil {
		return err
	}
	ac.Lost = false
	ac.Opts.Log.Warn().Msg("tasks from before the loss of the ledger were read again; tasks without a result wait for release")
	return nil
}

// reconcile compares the run directories of a task with the ledger, before the ledger gets a
// new revision. A directory of this or a later revision is unknown to the ledger: it holds the
// task if a run may have begun in it.
func (ac *Acceptor) reconcile(c *Submission, revision int) error {
	c.attempt, c.Unknown = 0, nil
	if !c.Verdict.Admit || c.Task.ID == "" {
		return nil
	}
	list, err := ac.State.Attempts(c.Task.ID)
	for _, a := range list {
		dir := ac.State.RunDir(c.Task.ID, a.Revision, a.Attempt)
		if a.Revision < revision || dir == c.Dir || ac.Unused.Has(dir) {
			continue
		}
		if a.Revision == revision {
			c.attempt = max(c.attempt, a.Attempt)
		}
		if beganIn(dir) {
			c.Unknown = append(c.Unknown, ac.Relative(dir))
		}
	}
	if len(c.Unknown) > 0 {
		c.Verdict = core.Held(c.Verdict, task.Recovered)
	}
	return err
}

// beganIn reports whether a run may have begun in a directory without a run in the ledger. If
// none has, it prevents a later begin.
func beganIn(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && !runner.Void(dir)
}

// HasOutput reports whether a run has begun in a directory. It changes nothing: another worker
// may be about to begin a run there.
func HasOutput(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, runner.StdoutFile))
	return err == nil && !info.IsDir()
}

// HoldUnknown holds a queued task that may have run in directories without a run in the ledger.
// The job has the next free directory.
func (ac *Acceptor) HoldUnknown(ctx context.Context, row task.Task, j task.Job, unknown []string) error {
	ac.Unused.Keep(j.Dir)
	held, err := ac.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), &core.HoldRecovered{Task: row.Seq, Attempt: row.Attempt, Last: j.Attempt - 1, Unknown: unknown})
	if held {
		ac.WarnUnknown(row, unknown)
	}
	return err
}

// WarnUnknown logs why a task is held.
func (ac *Acceptor) WarnUnknown(row task.Task, unknown []string) {
	if len(unknown) > 0 {
		ac.Log(row).Warn().Strs("runs", unknown).Msg("task held: the ledger does not know a directory of its runs")
	}
}
