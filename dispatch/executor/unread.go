package executor

import (
	"context"
	"errors"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// A Rereading says how an unreadable answer is read again: after Pause, which doubles up to
// Longest, for Total.
type Rereading struct{ Pause, Longest, Total time.Duration }

// DefaultRereading is the Rereading of every Dispatcher, except in tests.
var DefaultRereading = Rereading{Pause: time.Second, Longest: time.Minute, Total: 15 * time.Minute}

// Try reads until it succeeds, the time is over, or ctx ends.
func (r Rereading) Try(ctx context.Context, read func() bool) {
	for pause, began := r.Pause, time.Now(); time.Since(began) < r.Total; pause = min(2*pause, r.Longest) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if read() {
			return
		}
	}
}

// readAnswer reads an unreadable answer of a run again, and reports whether an outcome is
// there. Otherwise the task is held, or left to the next daemon.
func (x *Executor) readAnswer(ctx context.Context, run *store.Run, row task.Task, j task.Job, o task.Outcome) (task.Outcome, bool) {
	if o.Unread == nil {
		return o, true
	}
	j.Report = nil // earlier reports of the agent were passed on
	x.keepExit(row, j, o)
	x.Rereading.Try(run.Ctx, func() bool {
		o = run.Conclude(x.Agents.Recover(run.Ctx, j))
		if o.Unread != nil {
			x.keepExit(row, j, o)
		}
		return o.Unread == nil
	})
	if o.Unread == nil {
		x.FaultLog.Clear(store.Reading)
		return o, true
	}
	if run.Ctx.Err() == nil {
		x.holdUnread(ctx, row, o)
		return o, false
	}
	cancelled, yes := run.NeverBegun(j)
	cancelled.Exit = o.Exit
	return cancelled, yes
}

// keepExit reports an unreadable answer, and saves how its run ended: the keeper may be the
// only one to know.
func (x *Executor) keepExit(row task.Task, j task.Job, o task.Outcome) {
	x.FaultLog.Report(store.Reading, row, o.Unread)
	if o.Exit.PID != 0 && j.Dir != "" {
		_ = runner.KeepExit(j.Dir, o.Exit) // an error is harmless: the next read tries again, and the keeper has the exit
	}
}

// holdUnread holds a task whose answer could not be read, until Release.
func (x *Executor) holdUnread(ctx context.Context, row task.Task, o task.Outcome) {
	held := false
	err := x.Persist(ctx, row, func() error {
		return x.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) (err error) {
			_, held, err = x.Writer.DecideOn(tx, row.Seq, false, &core.KeepUnread{Task: row.Seq, Attempt: row.Attempt, Why: o.Unread.Error()})
			if err != nil || !held || o.Exit.PID == 0 {
				return err
			}
			return tx.SetProcess(row.Seq, row.Attempt, o.Exit.PID, 0, runner.Boot()) // a known process proves that the run began, whatever its directory shows
		})
	})
	if err == nil && held { // otherwise the run directory still has the answer
		x.Log(row).Error().Err(o.Unread).Msg("answer cannot be read; task held until it is released")
	}
}

// ReevaluateUnread takes a result file as the answer that could not be read, or reads the
// answer again after Release.
func (x *Executor) ReevaluateUnread(ctx context.Context, row task.Task) error {
	if answered, err := x.Placed.HandleFile(ctx, row); answered || err != nil {
		return err
	}
	if row.Until.IsZero() {
		return nil
	}
	state, err := x.Writer.Decide(ctx, store.TaskLoader(row.Seq, true, false), &core.Reread{Task: row.Seq, Attempt: row.Attempt})
	if errors.Is(err, core.ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	return x.RecoverRun(ctx, state.Task(row.Seq).Task)
}
