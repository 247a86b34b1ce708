package dispatch

import (
	"context"
	"os"
	"path/filepath"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// doubt holds a task that may have run before the ledger was lost: only a
// person can know. One that has a result file is held for that alone, whatever
// the verdict, until adoptHeld takes the result for its answer, which it does
// when all revisions of its id were met.
func (ac *acceptor) doubt(t envelope.Task, v task.Verdict) task.Verdict {
	if !ac.lost || t.ID == "" || shapeless(v.Findings.Kind()) {
		return v
	}
	if !v.Admit && ac.Box.HasResult(t.ID) {
		v = task.Verdict{Admit: true, Findings: v.Findings.Warnings(), Terms: task.Terms{Deadline: t.Deadline}}
	}
	return core.Held(v, task.Recovered)
}

// metAgain ends the doubt once every line was met that was there when a lost
// ledger was begun anew.
func (ac *acceptor) metAgain(ctx context.Context) error {
	if !ac.lost {
		return nil
	}
	err := ac.writer.update(ctx, func(tx *transaction) error {
		if err := tx.MetAgain(); err != nil {
			return err
		}
		return tx.Log(event(task.Task{}, task.KindLedgerRecovered, nil))
	})
	if err != nil {
		return err
	}
	ac.lost = false
	ac.opts.Log.Warn().Msg("tasks from before the ledger was lost are met again; those without a result wait for release")
	return nil
}

// reconcile compares the run directories of a task with the ledger, before that
// gets a new revision of it. A directory of this revision, or of a later one, is
// of a time that the ledger does not know: what may have begun there holds the task.
func (ac *acceptor) reconcile(c *submission, revision int) error {
	c.attempt, c.unknown = 0, nil
	if !c.verdict.Admit || c.task.ID == "" {
		return nil
	}
	list, err := ac.State.Attempts(c.task.ID)
	for _, a := range list {
		dir := ac.State.RunDir(c.task.ID, a.Revision, a.Attempt)
		if a.Revision < revision || dir == c.dir || ac.unused.has(dir) {
			continue
		}
		if a.Revision == revision {
			c.attempt = max(c.attempt, a.Attempt)
		}
		if beganIn(dir) {
			c.unknown = append(c.unknown, ac.relative(dir))
		}
	}
	if len(c.unknown) > 0 {
		c.verdict = core.Held(c.verdict, task.Recovered)
	}
	return err
}

// beganIn reports whether a run may have begun in a directory that is of no
// run in the ledger. Where none has, it sees to it that none will.
func beganIn(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && !runner.Void(dir)
}

// hasOutput reports whether a run has begun in a directory, and changes nothing
// there: another worker may be about to begin one.
func hasOutput(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, runner.StdoutFile))
	return err == nil && !info.IsDir()
}

// holdUnknown holds a task whose turn has come and that may have begun in
// directories of which the ledger has no run. The job has the next free one.
func (ac *acceptor) holdUnknown(ctx context.Context, row task.Task, j task.Job, unknown []string) error {
	ac.unused.keep(j.Dir)
	held, err := ac.writer.decideIfCurrent(ctx, loads(row.Seq, false, false), &core.HoldRecovered{Task: row.Seq, Attempt: row.Attempt, Last: j.Attempt - 1, Unknown: unknown})
	if held {
		ac.warnUnknown(row, unknown)
	}
	return err
}

// warnUnknown tells the operator why a task is held.
func (ac *acceptor) warnUnknown(row task.Task, unknown []string) {
	if len(unknown) > 0 {
		ac.log(row).Warn().Strs("runs", unknown).Msg("task held: the ledger does not know a directory of its runs")
	}
}
