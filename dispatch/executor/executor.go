package executor

import (
	"context"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// An Executor starts the runs of queued tasks, and takes up those of an earlier daemon.
type Executor struct {
	*Preparer
	Completer *exchange.Completer
	Endings   chan struct{} // holds a token for each run that ended here and is not finished
	Finishing *schedule.WorkerPool
	Rereading Rereading // how answers are read again
}

// Worker runs one task after another. It begins none once take has ended, and
// cuts its run short when work ends.
func (x *Executor) Worker(take, work context.Context) {
	for {
		it, ok := x.Queue.Take(take)
		if !ok {
			return
		}
		x.attempt(take, work, it)
	}
}

// attempt runs one task once, when its slot is free. That is free again when the
// agent has exited: making its result durable does not keep the next task waiting.
func (x *Executor) attempt(take, ctx context.Context, it schedule.Item) {
	run, row, job, err := x.takeUp(ctx, it)
	x.Waits.Proceeded(ctx, it.Seq)
	if err != nil || job.RunID == "" {
		x.over(run)
		x.Queue.Release(it)
		if err != nil {
			x.FaultLog.Report(store.Starting, row, err)
			x.rest(ctx, it)
		}
		x.turnAway(ctx, it.Agent)
		x.Queue.Done()
		return
	}
	if !x.Queue.WaitForSlot(take, run.Ctx, it) {
		x.putOff(ctx, run, row, job)
		return
	}
	run.Began.Store(true)
	run.Callback.Store(&job.Task.Callback)
	x.Publisher.GuardRun(run, row, job.Terms)
	if !row.Latest {
		run.MayHaveSuccessor.Store(true) // by a revision that came while an earlier run went on
	}
	outcome := run.Conclude(x.runAgent(ctx, run, row, job))
	if job.Dir != "" && outcome.Exit.PID != 0 { // what has no directory is lost, begun or not, when we are killed
		x.Queue.RecordRun(it.Agent, outcome.Exit.Wall)
	}
	x.Queue.Release(it)
	switch o, cancelled := run.NeverBegun(job); {
	case outcome.Void == nil:
		x.FaultLog.Clear(store.Starting)
	case cancelled:
		outcome = o
	}
	x.Endings <- struct{}{} // quick agents answer faster than results get durable: the rest waits in the queue
	x.Finishing.Go(func() {
		defer func() { <-x.Endings }()
		x.wrapUp(ctx, run, row, job, outcome)
	})
}

// runAgent runs the agent, and notes and logs its start: that of a process when
// there is one, and that of a worker's task before anybody knows.
func (x *Executor) runAgent(ctx context.Context, run *store.Run, row task.Task, job task.Job) task.Outcome {
	started := func() { x.Info(row).Int("attempt", job.Attempt).Msg("agent started") }
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

// takeUp takes up a run that has begun already, or prepares one.
func (x *Executor) takeUp(ctx context.Context, it schedule.Item) (*store.Run, task.Task, task.Job, error) {
	if s, begun := it.Begun.(*Start); begun {
		s.Run.CancelWith(ctx)
		x.equip(ctx, s.Run, s.Submission.Row, &s.Job)
		return s.Run, s.Submission.Row, s.Job, nil
	}
	run := x.Runs.Begin(ctx, it) // before anybody can see it running
	row, job, err := x.prepare(ctx, it, run)
	return run, row, job, err
}

// wrapUp does what comes of a run whose slot is free again.
func (x *Executor) wrapUp(ctx context.Context, run *store.Run, row task.Task, j task.Job, o task.Outcome) {
	defer x.Queue.Done()
	defer x.Canceller.StopAgain(ctx, run)
	defer x.over(run)
	if o.Void != nil {
		x.giveBack(ctx, row, o.Void)
		return
	}
	if o, read := x.readAnswer(ctx, run, row, j, o); read {
		x.finish(ctx, row, j.Terms, o)
	}
}

// over says that nothing more will come of a run, but what it asked for.
func (x *Executor) over(r *store.Run) {
	if r.Began.Load() {
		x.RecentRuns.Add(r.Item)
	}
	x.Runs.Finish(r)
}

// giveBack queues a task again whose run never began for want of something
// that all tasks need.
func (x *Executor) giveBack(ctx context.Context, row task.Task, err error) {
	x.FaultLog.Report(store.Starting, row, err)
	x.unstart(ctx, row, store.RetryPause)
}

// putOff queues a task again that got ready too early, unless it was cancelled
// meanwhile.
func (x *Executor) putOff(ctx context.Context, run *store.Run, row task.Task, j task.Job) {
	x.Queue.Release(run.Item)
	x.Finishing.Go(func() {
		defer x.Queue.Done()
		defer x.Canceller.StopAgain(ctx, run)
		defer x.over(run)
		if o, cancelled := run.NeverBegun(j); cancelled {
			x.finish(ctx, row, j.Terms, o)
			return
		}
		x.unstart(ctx, row, 0)
	})
}

// unstart voids the intent of a run that never began, and queues the task again after a
// pause. What others wait for follows before the pause. The directory goes after the intent: of an intent without one nobody could say
// whether the run began.
func (x *Executor) unstart(ctx context.Context, row task.Task, pause time.Duration) {
	var follow store.Consequences
	err := x.Persist(ctx, row, func() (err error) {
		follow, err = x.Writer.Commit(context.WithoutCancel(ctx), func(tx *store.Transaction) error {
			_, _, err := x.Writer.DecideOn(tx, row.Seq, false, &core.Void{Task: row.Seq, Attempt: row.Attempt})
			return err
		})
		return err
	})
	if err != nil || len(follow.Moves) == 0 {
		return
	}
	fault.Point("unstarted")
	x.removeRunDir(row, row.Attempt)
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
