package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// putBack holds a task whose run did nothing for want of what only a person can
// give, such as a login, until Release.
func (d *Dispatcher) putBack(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) {
	next, moved := row, false
	err := d.insist(ctx, row, func(tx *ledger.Tx) (err error) {
		run := ended(row, o)
		run.Cause = task.CausePutBack
		if err := tx.FinishRun(run); err != nil {
			return err
		}
		next, moved, err = hold(tx, row, []task.Reason{o.Hold}, deadline)
		if err != nil || !moved {
			return err
		}
		return tx.Log(event(row, task.KindTaskPutBack, conclusion(o)))
	})
	if err != nil {
		return // the run directory still says what happened
	}
	fault.Point("put-back")
	ctx = context.WithoutCancel(ctx)
	d.settled(ctx, row)
	if moved {
		d.log(row).Warn().Str("reason", string(o.Hold)).Msg("task waits for a person before it is run again")
		d.proceed(ctx, next)
		d.admitNext(ctx, row) // which need not wait for that
	}
}
