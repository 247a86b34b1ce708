package executor

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// finish makes the outcome of a run durable and publishes it; the terms of the run may require
// an approval first. The run directory holds the answer until the ledger does, so a retry is
// safe.
func (x *Executor) finish(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	if o.Detached {
		x.Info(row).Int("attempt", row.Attempt).Msg("the agent keeps running")
		return
	}
	x.Info(row).Int("exit_code", o.Exit.Code).Int64("took_ms", o.Exit.Wall.Milliseconds()).Str("status", string(o.Result.Status)).Msg("agent exited")
	if needed := o.NeededHosts(); len(needed) > 0 { // asked here: its row escapes
		x.logRefusedHosts(ctx, row, needed)
	}
	if o.Hold != task.ProviderLimit && o.Result.Status != envelope.Failed && x.Pauses.Limits.Worked(row.Agent, o.Exit.Started) {
		x.WakeLimited(ctx, row.Agent)
	}
	switch {
	case o.Hold == task.AuthRequired:
		x.putBack(ctx, row, terms.Deadline, o)
	case o.Hold == task.ProviderLimit:
		x.holdForLimit(ctx, row, terms.Deadline, o)
	case o.Hold != "", !o.Retry && !x.Completer.OnFailure(row, o).Retry, !x.retry(ctx, row, terms.Deadline, o):
		x.Completer.Complete(ctx, row, terms, o)
	}
}

// maxHosts limits the hosts in an event.
const maxHosts = 20

// logRefusedHosts records which hosts the sandbox of a run refused. After a crash, the end of the
// run is read again, and the event may come twice.
func (x *Executor) logRefusedHosts(ctx context.Context, row task.Task, hosts []task.RefusedHost) {
	data := map[string]any{"attempt": row.Attempt, "count": len(hosts), "hosts": hosts[:min(len(hosts), maxHosts)]}
	err := x.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
		return tx.Log(store.Event(row, task.KindSandboxRefused, data))
	})
	if err != nil {
		x.Log(row).Warn().Err(err).Msg("refused hosts of a sandbox not recorded")
	}
}

// retry queues a task for another attempt after a pause. It reports false when no attempts are
// left, or the pause would exceed the deadline of the run.
func (x *Executor) retry(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) bool {
	runs, err := x.runsOf(ctx, row)
	if err != nil {
		return true // the run directory still has the outcome
	}
	failed := Failures(runs, row.Attempt, o)
	if failed > x.Agents.Retries(row.Agent) {
		return false
	}
	pause := time.Now()
	if o.Exit.Cause != task.CauseInterrupted {
		pause = pause.Add(store.Backoff(x.Agents.Backoff(row.Agent), failed))
	}
	if !deadline.IsZero() && !pause.Before(deadline) {
		return false
	}
	_, _ = x.Writer.MustDecide(ctx, row, store.TaskLoader(row.Seq, true, false), &core.Retry{
		Task: row.Seq, Until: pause, Run: o.Run(row), Data: o.EndData(),
	}) // after an error, which is logged, the run directory still has the outcome
	return true
}

// runsOf returns the runs of a task, and retries after temporary errors. The ledger first adds
// what its tables don't have yet.
func (x *Executor) runsOf(ctx context.Context, row task.Task) (runs []task.Run, err error) {
	err = x.Persist(ctx, row, func() (err error) {
		runs, err = x.Ledger.Runs(context.WithoutCancel(ctx), row.Seq)
		return err
	})
	return runs, err
}

// notFailed are the causes of runs that are no failed attempts: they had no effect, or the daemon
// interrupted them.
var notFailed = []task.Cause{task.CausePutBack, task.CauseNoAnswer, task.CauseRefused, task.CauseInterrupted}

// Failures counts the failed attempts. It includes the current one, which the ledger has only
// as begun. An attempt that the daemon interrupted is no failure.
func Failures(runs []task.Run, attempt int, o task.Outcome) int {
	failed := 0
	if o.Exit.Cause != task.CauseInterrupted {
		failed = 1
	}
	for _, run := range runs {
		begun := !run.Finished.IsZero() || run.ExitCode != 0
		if run.Attempt != attempt && begun && !slices.Contains(notFailed, run.Cause) {
			failed++
		}
	}
	return failed
}
