package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// A rereading says how an answer is read again that could not be read: after a
// pause, which doubles up to the longest, and for so long in all.
type rereading struct{ pause, longest, total time.Duration }

// usualRereading is that of every Dispatcher, except in tests.
var usualRereading = rereading{pause: time.Second, longest: time.Minute, total: 15 * time.Minute}

// try reads until it can, the time is over or ctx ends.
func (r rereading) try(ctx context.Context, read func() bool) {
	for pause, began := r.pause, time.Now(); time.Since(began) < r.total; pause = min(2*pause, r.longest) {
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

// unread reports whether a task is held because the answer of its run could not
// be read. Nothing but Release, Cancel and a result file ends that.
func unread(row task.Task) bool {
	return row.State == task.Held && slices.Contains(row.Reasons, task.AnswerUnread)
}

// readAnswer reads the answer of a run again as long as it cannot be read, and
// reports whether an outcome is there. Otherwise the task is held, or left to the
// next daemon.
func (d *Dispatcher) readAnswer(ctx context.Context, run *run, row task.Task, j task.Job, o task.Outcome) (task.Outcome, bool) {
	if o.Unread == nil {
		return o, true
	}
	j.Report = nil // what the agent reported was passed on
	d.keepExit(row, j, o)
	d.rereading.try(run.ctx, func() bool {
		o = run.conclude(d.agents.Recover(run.ctx, j))
		if o.Unread != nil {
			d.keepExit(row, j, o)
		}
		return o.Unread == nil
	})
	if o.Unread == nil {
		d.relax(reading)
		return o, true
	}
	if run.ctx.Err() == nil {
		d.holdUnread(ctx, row, o)
		return o, false
	}
	cancelled, yes := run.neverBegun(j)
	cancelled.Exit = o.Exit
	return cancelled, yes
}

// keepExit complains of an answer that cannot be read, and has how its run ended
// written down, which the keeper may be the only one to know.
func (d *Dispatcher) keepExit(row task.Task, j task.Job, o task.Outcome) {
	d.complain(reading, row, o.Unread)
	if o.Exit.PID != 0 && j.Dir != "" {
		_ = runner.KeepExit(j.Dir, o.Exit) // or it is tried again, and the keeper has it
	}
}

// holdUnread holds a task whose answer could not be read, until Release.
func (d *Dispatcher) holdUnread(ctx context.Context, row task.Task, o task.Outcome) {
	next, moved := row, false
	err := d.insist(ctx, row, func(tx *ledger.Tx) (err error) {
		next = row
		next.State, next.Reasons, next.Until = task.Held, []task.Reason{task.AnswerUnread}, time.Time{}
		if o.Exit.PID != 0 { // a run of which a process is known has begun, whatever its directory shows
			if err := tx.SetProcess(row.Seq, row.Attempt, o.Exit.PID, 0, runner.Boot()); err != nil {
				return err
			}
		}
		change := task.Change{To: next.State, Attempt: row.Attempt, Reasons: next.Reasons}
		if moved, err = tx.Move(row.Seq, row.State, row.Attempt, change); err != nil || !moved {
			return err
		}
		return tx.Log(event(row, task.KindTaskHeld, map[string]any{"reasons": next.Reasons, "message": o.Unread.Error()}))
	})
	if err != nil || !moved {
		return // the run directory still has the answer
	}
	d.log(row).Error().Err(o.Unread).Msg("answer cannot be read; task held until it is released")
	d.proceed(context.WithoutCancel(ctx), next)
}

// reconsiderUnread takes a result file for the answer that could not be read, or
// reads that again when the task was released.
func (d *Dispatcher) reconsiderUnread(ctx context.Context, row task.Task) error {
	if answered, err := d.foreign(ctx, row); answered || err != nil {
		return err
	}
	if row.Until.IsZero() {
		return nil
	}
	moved := false
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		moved, err = tx.Move(row.Seq, row.State, row.Attempt, task.Change{To: task.Running, Attempt: row.Attempt})
		return err
	})
	if err != nil || !moved {
		return err
	}
	d.leave(row)()
	row.State, row.Reasons, row.Until = task.Running, nil, time.Time{}
	return d.recoverRun(ctx, row)
}

// releaseUnread has the answer of the revision read again whose answer could not
// be read, and reports whether there is one.
func (d *Dispatcher) releaseUnread(ctx context.Context, row task.Task, by By) (task.Task, bool, error) {
	change := task.Change{To: task.Held, Reasons: row.Reasons, Until: time.Now()}
	return d.change(ctx, row, change, event(row, task.KindTaskReleased, by.data()))
}

// endUnread ends the run of a task whose answer could not be read and is not
// wanted any more. Of any other task it ends nothing.
func endUnread(tx *ledger.Tx, row task.Task, now time.Time) error {
	if !unread(row) {
		return nil
	}
	run, found, err := tx.Run(task.RunName{Task: row.Seq, Attempt: row.Attempt})
	if err != nil || !found {
		return err
	}
	run.Started, run.Finished, run.ExitCode, run.Cause = run.Intent, now, -1, task.CauseLost
	return tx.FinishRun(run)
}
