package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/fault"
)

// Intend makes durable that the job is about to start, or to wait for its agent to fetch it. It
// reserves a part of the budget, which becomes the job's Allowance. It reports false when the
// task was moved meanwhile, or a limit has too little room for the run.
func (p *Preparer) Intend(ctx context.Context, row task.Task, j *task.Job, to task.State) (task.Task, bool, error) {
	began := false
	if limited(row, j.Terms) && row.Attempt > 0 {
		var err error
		if began, err = p.Reader.Ran(ctx, row); err != nil {
			return row, false, err
		}
	}
	var answer error
	var intended task.Job
	var waited bool // for budget
	follow, err := p.Writer.Commit(ctx, func(tx *store.Transaction) (err error) {
		intended = *j
		if answer, err = p.IntendIn(tx, row, began, &intended, core.Intend{To: to}); answer == nil && err == nil && limited(row, j.Terms) {
			waited, err = tx.EndWaits(row.Seq)
		}
		return err
	})
	if err != nil {
		return row, false, fmt.Errorf("start %s: %w", row.ID, err)
	}
	if answer != nil && j.Dir != "" && !j.At.IsRemote() {
		p.removeRunDir(row, j.Attempt) // before the next attempt, which may get the same directory
	}
	p.Writer.OnCommitted(ctx, follow)
	if shortfall, ok := errors.AsType[*core.Shortfall](answer); ok && !shortfall.Waits {
		p.Log(row).Warn().Str("reason", shortfall.Reason).Msg("budget exceeded")
	}
	if answer != nil {
		return row, false, nil
	}
	if waited {
		if err := p.WakeForBudget(ctx); err != nil {
			p.FaultLog.Report(store.Judging, row, err)
			p.Timers.After(row.Seq, store.RetryPause)
		}
	}
	fault.Point("intent")
	*j = intended
	row.State, row.Attempt = to, j.Attempt
	return row, true, nil
}

// IntendIn is Intend in its transaction, which may run again. It returns the answer of the
// core.
func (p *Preparer) IntendIn(tx *store.Transaction, row task.Task, began bool, j *task.Job, c core.Intend) (answer, err error) {
	run := task.Run{Task: row.Seq, Attempt: j.Attempt, ID: j.RunID, Intent: time.Now(), Boot: runner.Boot(), Terms: j.Terms, At: j.At}
	if j.Dir != "" && !j.At.IsRemote() {
		run.Boot = runner.Evidence(j.Dir)
	}
	c.Task, c.Attempt, c.Agent, c.Request, c.Run = row.Seq, row.Attempt, row.Agent, j.Task, run
	if c.Spending, err = p.spending(tx, row, run); err != nil {
		return nil, err
	}
	state, err := store.TaskLoader(row.Seq, began, false)(tx)
	if err != nil {
		return nil, err
	}
	if answer, err = p.Writer.DecideIn(tx, state, &c, time.Now()); err == nil && answer == nil {
		run = *state.Task(row.Seq).Run
		j.Allowance, j.Terms = run.Reserved, run.Terms
	}
	return answer, err
}
