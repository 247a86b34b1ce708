package executor

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// putBack holds a task until Release when its run did nothing for lack of something that only a
// person can supply, such as a login.
func (x *Executor) putBack(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) {
	moved, _ := x.Writer.MustDecide(ctx, row, store.TaskLoader(row.Seq, true, false), &core.PutBack{
		Task: row.Seq, Reason: o.Hold, Until: deadline, Run: o.Run(row), Data: o.EndData(),
	})
	if moved { // after an error the run directory still has the outcome
		x.Log(row).Warn().Str("reason", string(o.Hold)).Msg("task waits for a person before it is run again")
	}
}

// holdForLimit holds a task whose run its agent's provider did not serve, until that serves
// again. The other tasks of the agent aren't started either before that.
func (x *Executor) holdForLimit(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) {
	until := x.Pauses.Limits.Reach(row.Agent, schedule.Reached{Named: o.HoldUntil, Short: o.HoldShort}, time.Now(), x.Opts.LimitPause)
	moved, _ := x.Writer.MustDecide(ctx, row, store.TaskLoader(row.Seq, true, false), &core.PutBack{
		Task: row.Seq, Reason: o.Hold, Until: core.Earliest(deadline, until), Run: o.Run(row), Data: o.EndData(),
	})
	if moved { // after an error the run directory still has the outcome
		x.Log(row).Warn().Time("until", until).Str("reason", o.Result.Error.Message).Msg("provider limit reached; task held")
	}
	x.holdPaused(ctx, row.Agent)
}

// WakeLimited evaluates the tasks again that are held for a limit of an agent's provider.
func (p *Preparer) WakeLimited(ctx context.Context, agent string) {
	for row, err := range p.Reader.HeldOf(ctx, agent) {
		if err != nil {
			p.FaultLog.Report(store.Judging, row, err) // its time comes nevertheless
			return
		}
		if row.State == task.Held && slices.Contains(row.Reasons, task.ProviderLimit) {
			p.Timers.Now(row.Seq)
		}
	}
}
