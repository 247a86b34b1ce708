package executor

import (
	"context"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// putBack holds a task until Release when its run did nothing for lack of something that only a
// person can supply, such as a login.
func (x *Executor) putBack(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) {
	moved, _ := x.Writer.MustDecide(ctx, row, store.TaskLoader(row.Seq, true, false), &core.PutBack{
		Task: row.Seq, Reason: o.Hold, Until: deadline, Run: exchange.EndedRun(row, o), Data: exchange.EndData(o),
	})
	if moved { // after an error the run directory still has the outcome
		x.Log(row).Warn().Str("reason", string(o.Hold)).Msg("task waits for a person before it is run again")
	}
}
