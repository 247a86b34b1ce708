package executor

import (
	"context"
	"errors"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/fault"
)

// An Executor starts the runs of queued tasks, and continues the runs of an earlier daemon.
type Executor struct {
	*Preparer
	Completer *exchange.Completer
	Endings   chan struct{} // holds a token for each run that ended here and is not finished
	Finishing *schedule.WorkerPool
	Rereading Rereading // how answers are read again
}

// Worker runs one task after another. It begins none after take has ended, and cuts its run
// short when work ends.
func (x *Executor) Worker(take, work context.Context) {
	for {
		it, ok := x.Queue.Take(take)
		if !ok {
			return
		}
		if it.Remote {
			x.Finishing.Go(func() { x.attempt(take, work, it) }) // it waits for another machine, and takes no worker
			continue
		}
		x.attempt(take, work, it)
	}
}

// attempt runs one task once. It releases the slot when the agent has exited, so that the commit
// of the result does not delay the next task.
func (x *Executor) attempt(take, ctx context.Context, it schedule.Item) {
	run, row, job, err := x.nextRun(ctx, it)
	if err != nil || job.RunID == "" {
		x.endRun(run)
		x.dropPlace(it)
		x.Queue.Release(it)
		if err != nil && !errors.Is(err, errNoPlace) {
			x.FaultLog.Report(store.Starting, row, err)
		}
		if err != nil {
			x.requeueAfter(ctx, it, err)
		}
		x.holdPaused(ctx, it.Agent)
		x.Queue.Done()
		return
	}
	if take.Err() != nil {
		x.requeueUnbegun(ctx, run, row, job)
		return
	}
	run.Began.Store(true)
	run.Callback.Store(&job.Task.Callback)
	x.Publisher.GuardRun(run, row, job)
	if !row.Latest {
		run.MayHaveSuccessor.Store(true) // a later revision was accepted during an earlier run
	}
	outcome := run.Conclude(x.runAgent(ctx, run, row, job))
	x.Queue.Release(it)
	switch o, cancelled := run.NeverBegun(job); {
	case outcome.Void == nil:
		x.FaultLog.Clear(store.Starting)
		if it.Remote {
			x.FaultLog.Clear(store.Sending)
		}
	case cancelled:
		outcome = o
	}
	x.Endings <- struct{}{} // a limit: quick agents end faster than results become durable
	x.Finishing.Go(func() {
		defer func() { <-x.Endings }()
		x.wrapUp(ctx, run, row, job, outcome)
	})
}

// runAgent runs the agent. It records and logs the start of its process; for a worker's task it
// logs the start before the worker has it.
func (x *Executor) runAgent(ctx context.Context, run *store.Run, row task.Task, job task.Job) task.Outcome {
	started := func() { x.Info(row).Int("attempt", job.Attempt).Msg("agent started") }
	if job.At.IsRemote() {
		return x.Agents.Run(run.Ctx, job, func(runner.Process) { // of another machine
			started()
			x.FaultLog.Clear(store.Sending)
		})
	}
	if job.Dir == "" {
		started()
	}
	note := x.newNote(ctx, row)
	defer note.end()
	outcome := x.Agents.Run(run.Ctx, job, func(p runner.Process) {
		started()
		note.begin(p)
	})
	if o := outcome; job.Dir != "" && o.Void == nil && !o.Detached && o.Exit.PID == 0 && o.Exit.Cause == "" {
		x.Log(row).Warn().Int("attempt", job.Attempt).Str("reason", o.Result.Error.Message).Msg("agent not started")
	}
	return outcome
}

// nextRun returns a run that has begun already, or prepares one.
func (x *Executor) nextRun(ctx context.Context, it schedule.Item) (*store.Run, task.Task, task.Job, error) {
	if s, begun := it.Begun.(*Start); begun {
		s.Run.CancelWith(ctx)
		x.addReports(ctx, s.Run, s.Submission.Row, &s.Job)
		return s.Run, s.Submission.Row, s.Job, nil
	}
	run := x.Runs.Begin(ctx, it) // before its state is visible as running
	row, job, err := x.prepare(ctx, it, run)
	return run, row, job, err
}

// wrapUp finishes a run whose slot is free again.
func (x *Executor) wrapUp(ctx context.Context, run *store.Run, row task.Task, j task.Job, o task.Outcome) {
	defer x.Queue.Done()
	defer x.Canceller.StopAgain(ctx, run)
	defer x.endRun(run)
	if unsent, is := errors.AsType[*schedule.UnsentError](o.Void); is {
		x.dropPlace(run.Item)
		x.requeueUnsent(ctx, row, unsent)
		return
	}
	if o.Void != nil && j.At.IsRemote() {
		x.restartRemote(ctx, row, o.Void)
		x.settle(ctx, row, j, o)
		return
	}
	if o.Void != nil {
		x.requeueFailedStart(ctx, row, o.Void)
		return
	}
	if o, read := x.readAnswer(ctx, run, row, j, o); read {
		x.finish(ctx, row, j.Terms, o)
	}
	x.settle(ctx, row, j, o)
}

// endRun removes a run from the current runs. Requests of the run may still be unread.
func (x *Executor) endRun(r *store.Run) {
	if r.Began.Load() {
		x.RecentRuns.Add(r.Item)
	}
	x.Runs.Finish(r)
}

// requeueFailedStart queues a task again whose run never began, for a reason that concerns all
// tasks.
func (x *Executor) requeueFailedStart(ctx context.Context, row task.Task, err error) {
	x.FaultLog.Report(store.Starting, row, err)
	x.voidIntent(ctx, row, store.RetryPause)
}

// requeueUnbegun queues a task again whose run was intended when the daemon stopped, unless it was
// cancelled meanwhile.
func (x *Executor) requeueUnbegun(ctx context.Context, run *store.Run, row task.Task, j task.Job) {
	x.dropPlace(run.Item)
	x.Queue.Release(run.Item)
	x.Finishing.Go(func() {
		defer x.Queue.Done()
		defer x.Canceller.StopAgain(ctx, run)
		defer x.endRun(run)
		if o, cancelled := run.NeverBegun(j); cancelled {
			x.finish(ctx, row, j.Terms, o)
			return
		}
		x.voidIntent(ctx, row, 0)
	})
}

// voidIntent voids the intent of a run that never began, and queues the task again after a
// pause. Other tasks continue before the pause.
func (x *Executor) voidIntent(ctx context.Context, row task.Task, pause time.Duration) {
	follow, moved := x.void(ctx, row, core.Void{})
	if !moved {
		return
	}
	if pause > 0 {
		now, later := follow.Pause()
		x.Writer.OnCommitted(ctx, now)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		follow = later
	}
	x.Writer.OnCommitted(ctx, follow)
}

// void removes the intent of a run that never began, and then its directory: without its directory,
// an intent does not show whether the run began. It reports whether the task is queued again.
func (x *Executor) void(ctx context.Context, row task.Task, c core.Void) (follow store.Consequences, moved bool) {
	c.Task, c.Attempt = row.Seq, row.Attempt
	err := x.Persist(ctx, row, func() (err error) {
		follow, err = x.Writer.Commit(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
			_, _, err := x.Writer.DecideOn(tx, row.Seq, false, &c)
			return err
		})
		return err
	})
	if err != nil || len(follow.Moves) == 0 {
		return follow, false
	}
	fault.Point("unstarted")
	x.removeRunDir(row, row.Attempt)
	return follow, true
}
