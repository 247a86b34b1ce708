package dispatch

import (
	"context"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// An executor starts the runs of queued tasks, and takes up those of an earlier daemon.
type executor struct {
	*base
	acceptor   *acceptor
	completion *completion
	placed     *placedResults
	endings    chan struct{} // holds a token for each run that ended here and is not finished
	finishing  *schedule.WorkerPool
	fresh      *fresh
	rereading  rereading // how answers are read again
	waits      *budgetWaiters
}

// worker runs one task after another. It begins none once take has ended, and
// cuts its run short when work ends.
func (x *executor) worker(take, work context.Context) {
	for {
		it, ok := x.queue.Take(take)
		if !ok {
			return
		}
		x.attempt(take, work, it)
	}
}

// attempt runs one task once, when its slot is free. That is free again when the
// agent has exited: making its result durable does not keep the next task waiting.
func (x *executor) attempt(take, ctx context.Context, it schedule.Item) {
	run, row, job, err := x.takeUp(ctx, it)
	x.waits.proceeded(ctx, it.Seq)
	if err != nil || job.RunID == "" {
		x.over(run)
		x.queue.Release(it)
		if err != nil {
			x.faults.report(starting, row, err)
			x.rest(ctx, it)
		}
		x.turnAway(ctx, it.Agent)
		x.queue.Done()
		return
	}
	if !x.queue.WaitForSlot(take, run.ctx, it) {
		x.putOff(ctx, run, row, job)
		return
	}
	run.began.Store(true)
	run.callback.Store(&job.Task.Callback)
	x.publisher.guardRun(run, row, job.Terms)
	if !row.Latest {
		run.followed.Store(true) // by a revision that came while an earlier run went on
	}
	outcome := run.conclude(x.runAgent(ctx, run, row, job))
	if job.Dir != "" && outcome.Exit.PID != 0 { // what has no directory is lost, begun or not, when we are killed
		x.queue.RecordRun(it.Agent, outcome.Exit.Wall)
	}
	x.queue.Release(it)
	switch o, cancelled := run.neverBegun(job); {
	case outcome.Void == nil:
		x.faults.clear(starting)
	case cancelled:
		outcome = o
	}
	x.endings <- struct{}{} // quick agents answer faster than results get durable: the rest waits in the queue
	x.finishing.Go(func() {
		defer func() { <-x.endings }()
		x.wrapUp(ctx, run, row, job, outcome)
	})
}

// runAgent runs the agent, and notes and logs its start: that of a process when
// there is one, and that of a worker's task before anybody knows.
func (x *executor) runAgent(ctx context.Context, run *run, row task.Task, job task.Job) task.Outcome {
	started := func() { x.info(row).Int("attempt", job.Attempt).Msg("agent started") }
	if job.Dir == "" {
		started()
	}
	note := x.newNote(ctx, row)
	defer note.end()
	outcome := x.agents.Run(run.ctx, job, func(p runner.Process) {
		started()
		note.begin(p)
	})
	if o := outcome; job.Dir != "" && o.Void == nil && !o.Detached && o.Exit.PID == 0 && o.Exit.Cause == "" {
		x.log(row).Warn().Int("attempt", job.Attempt).Str("reason", o.Result.Error.Message).Msg("agent not started")
	}
	return outcome
}

// takeUp takes up a run that has begun already, or prepares one.
func (x *executor) takeUp(ctx context.Context, it schedule.Item) (*run, task.Task, task.Job, error) {
	if s, begun := it.Begun.(*start); begun {
		s.run.under(ctx)
		x.equip(ctx, s.run, s.submission.row, &s.job)
		return s.run, s.submission.row, s.job, nil
	}
	run := x.runs.begin(ctx, it) // before anybody can see it running
	row, job, err := x.prepare(ctx, it, run)
	return run, row, job, err
}

// equip lets a run say what it spends and how far it is.
func (x *executor) equip(ctx context.Context, run *run, row task.Task, j *task.Job) {
	x.meters.measure(run, row, j)
	j.Report = x.messenger.reporting(ctx, row)
}

// wrapUp does what comes of a run whose slot is free again.
func (x *executor) wrapUp(ctx context.Context, run *run, row task.Task, j task.Job, o task.Outcome) {
	defer x.queue.Done()
	defer x.canceller.stopAgain(ctx, run)
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
func (x *executor) over(r *run) {
	if r.began.Load() {
		x.bygones.add(r.item)
	}
	x.runs.finish(r)
}

// giveBack queues a task again whose run never began for want of something
// that all tasks need.
func (x *executor) giveBack(ctx context.Context, row task.Task, err error) {
	x.faults.report(starting, row, err)
	x.unstart(ctx, row, retryPause)
}

// putOff queues a task again that got ready too early, unless it was cancelled
// meanwhile.
func (x *executor) putOff(ctx context.Context, run *run, row task.Task, j task.Job) {
	x.queue.Release(run.item)
	x.finishing.Go(func() {
		defer x.queue.Done()
		defer x.canceller.stopAgain(ctx, run)
		defer x.over(run)
		if o, cancelled := run.neverBegun(j); cancelled {
			x.finish(ctx, row, j.Terms, o)
			return
		}
		x.unstart(ctx, row, 0)
	})
}

// unstart voids the intent of a run that never began, and queues the task again after a
// pause. The directory goes after the intent: of an intent without one nobody could say
// whether the run began.
func (x *executor) unstart(ctx context.Context, row task.Task, pause time.Duration) {
	var follow consequences
	err := x.persist(ctx, row, func() (err error) {
		follow, err = x.writer.commit(context.WithoutCancel(ctx), func(tx *transaction) error {
			_, _, err := x.writer.decideOn(tx, row.Seq, false, &core.Void{Task: row.Seq, Attempt: row.Attempt})
			return err
		})
		return err
	})
	if err != nil || len(follow.moves) == 0 {
		return
	}
	fault.Point("unstarted")
	x.removeRunDir(row, row.Attempt)
	if pause > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	x.writer.onCommitted(ctx, follow)
}

// rest puts an item back into the queue after a pause.
func (x *executor) rest(ctx context.Context, it schedule.Item) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
		x.queue.Push(it)
	}
}

// refuseUnfit ends a task that cannot have a run directory, for something is in
// the way that only a person can remove.
func (x *executor) refuseUnfit(ctx context.Context, row task.Task, j task.Job, why *mailbox.UnfitError) error {
	x.log(row).Error().Err(why).Msg("run directory cannot be made")
	finding := envelope.Finding{Kind: envelope.InternalError, Message: "the run could not be prepared: " + why.Error()}
	return x.reader.apply(ctx, row, j.Task, task.Verdict{Findings: envelope.Findings{finding}, Terms: j.Terms})
}
