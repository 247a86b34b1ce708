package executor

import (
	"context"
	"errors"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// longestUnsent is the longest pause before a job is sent again.
const longestUnsent = time.Minute

// unsentPause returns the pause after a job could not be sent so many times.
func unsentPause(failed int) time.Duration {
	return min(store.Backoff(store.RetryPause, failed), longestUnsent)
}

// requeueUnsent queues a task again whose job could not be sent, after a pause that grows. Nothing of the run stays,
// since its runner has never heard of it.
func (x *Executor) requeueUnsent(ctx context.Context, row task.Task, why *schedule.UnsentError) {
	if !errors.Is(why, context.Canceled) { // the daemon stops, or the connection was lost
		x.FaultLog.Report(store.Sending, row, why)
	}
	follow, moved := x.void(ctx, row)
	if !moved {
		return
	}
	now, later := follow.Pause()
	x.Writer.OnCommitted(ctx, now)
	x.Queue.AddBusy()
	x.Finishing.Go(func() { // the pause takes none of the tokens of Endings
		defer x.Queue.Done()
		select {
		case <-ctx.Done():
		case <-time.After(unsentPause(why.Failed)):
		}
		x.Writer.OnCommitted(ctx, later)
	})
}
