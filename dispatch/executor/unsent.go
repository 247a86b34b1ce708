package executor

import (
	"context"
	"errors"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// longestUnsent is the longest pause before a job is sent again.
const longestUnsent = time.Minute

// unsentPause returns the pause after a job could not be sent, or its run was void, so many times.
func unsentPause(failed int) time.Duration {
	return min(store.Backoff(store.RetryPause, failed), longestUnsent)
}

// requeueUnsent queues a task again whose job could not be sent, after a pause that grows. Nothing of the run stays,
// since its runner has never heard of it.
func (x *Executor) requeueUnsent(ctx context.Context, row task.Task, why *schedule.UnsentError) {
	if !errors.Is(why, context.Canceled) { // the daemon stops, or the connection was lost
		x.FaultLog.Report(store.Sending, row, why)
	}
	if follow, moved := x.void(ctx, row, core.Void{}); moved {
		x.requeueAfterPause(ctx, follow, unsentPause(why.Failed))
	}
}

// requeueAfterPause queues a task again whose run is void, after a pause.
func (x *Executor) requeueAfterPause(ctx context.Context, follow store.Consequences, pause time.Duration) {
	now, later := follow.Pause()
	x.Writer.OnCommitted(ctx, now)
	x.Queue.AddBusy()
	x.Finishing.Go(func() { // the pause takes none of the tokens of Endings
		defer x.Queue.Done()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		x.Writer.OnCommitted(ctx, later)
	})
}
