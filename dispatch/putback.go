package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// putBack holds a task whose run did nothing for want of what only a person can
// give, such as a login, until Release.
func (x *executor) putBack(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) {
	moved, _ := x.writer.mustDecide(ctx, row, loads(row.Seq, true, false), &core.PutBack{
		Task: row.Seq, Reason: o.Hold, Until: deadline, Run: ended(row, o), Data: conclusion(o),
	})
	if moved { // after an error the run directory still says what happened
		x.log(row).Warn().Str("reason", string(o.Hold)).Msg("task waits for a person before it is run again")
	}
}
