package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// worker runs one task after another. It begins none once take has ended, and
// cuts its run short when work ends.
func (d *Dispatcher) worker(take, work context.Context) {
	for {
		it, ok := d.queue.Take(take)
		if !ok {
			return
		}
		d.attempt(take, work, it)
	}
}

// attempt runs one task once, when its slot is free. That is free again when the
// agent has exited: making its result durable does not keep the next task waiting.
func (d *Dispatcher) attempt(take, ctx context.Context, it schedule.Item) {
	run, row, job, err := d.takeUp(ctx, it)
	d.waits.proceeded(ctx, it.Seq)
	if err != nil || job.RunID == "" {
		d.over(run)
		d.queue.Release(it)
		if err != nil {
			d.faults.report(starting, row, err)
			d.rest(ctx, it)
		}
		d.turnAway(ctx, it.Agent)
		d.queue.Done()
		return
	}
	if !d.queue.WaitForSlot(take, run.ctx, it) {
		d.putOff(ctx, run, row, job)
		return
	}
	run.began.Store(true)
	run.callback.Store(&job.Task.Callback)
	d.guardRun(run, row, job.Terms)
	if !row.Latest {
		run.followed.Store(true) // by a revision that came while an earlier run went on
	}
	outcome := run.conclude(d.runAgent(ctx, run, row, job))
	if job.Dir != "" && outcome.Exit.PID != 0 { // what has no directory is lost, begun or not, when we are killed
		d.queue.RecordRun(it.Agent, outcome.Exit.Wall)
	}
	d.queue.Release(it)
	switch o, cancelled := run.neverBegun(job); {
	case outcome.Void == nil:
		d.faults.clear(starting)
	case cancelled:
		outcome = o
	}
	d.endings <- struct{}{} // quick agents answer faster than results get durable: the rest waits in the queue
	d.finishing.Go(func() {
		defer func() { <-d.endings }()
		d.wrapUp(ctx, run, row, job, outcome)
	})
}

// runAgent runs the agent, and notes and logs its start: that of a process when
// there is one, and that of a worker's task before anybody knows.
func (d *Dispatcher) runAgent(ctx context.Context, run *run, row task.Task, job task.Job) task.Outcome {
	started := func() { d.info(row).Int("attempt", job.Attempt).Msg("agent started") }
	if job.Dir == "" {
		started()
	}
	note := d.newNote(ctx, row)
	defer note.end()
	outcome := d.agents.Run(run.ctx, job, func(p runner.Process) {
		started()
		note.begin(p)
	})
	if o := outcome; job.Dir != "" && o.Void == nil && !o.Detached && o.Exit.PID == 0 && o.Exit.Cause == "" {
		d.log(row).Warn().Int("attempt", job.Attempt).Str("reason", o.Result.Error.Message).Msg("agent not started")
	}
	return outcome
}

// takeUp takes up a run that has begun already, or prepares one.
func (d *Dispatcher) takeUp(ctx context.Context, it schedule.Item) (*run, task.Task, task.Job, error) {
	if s, begun := it.Begun.(*start); begun {
		s.run.under(ctx)
		d.equip(ctx, s.run, s.submission.row, &s.job)
		return s.run, s.submission.row, s.job, nil
	}
	run := d.runs.begin(ctx, it) // before anybody can see it running
	row, job, err := d.prepare(ctx, it, run)
	return run, row, job, err
}

// equip lets a run say what it spends and how far it is.
func (d *Dispatcher) equip(ctx context.Context, run *run, row task.Task, j *task.Job) {
	d.measure(run, row, j)
	j.Report = d.reporting(ctx, row)
}

// wrapUp does what comes of a run whose slot is free again.
func (d *Dispatcher) wrapUp(ctx context.Context, run *run, row task.Task, j task.Job, o task.Outcome) {
	defer d.queue.Done()
	defer d.stopAgain(ctx, run)
	defer d.over(run)
	if o.Void != nil {
		d.giveBack(ctx, row, o.Void)
		return
	}
	if o, read := d.readAnswer(ctx, run, row, j, o); read {
		d.finish(ctx, row, j.Terms, o)
	}
}

// over says that nothing more will come of a run, but what it asked for.
func (d *Dispatcher) over(r *run) {
	if r.began.Load() {
		d.bygones.add(r.item)
	}
	d.runs.finish(r)
}

// giveBack queues a task again whose run never began for want of something
// that all tasks need.
func (d *Dispatcher) giveBack(ctx context.Context, row task.Task, err error) {
	d.faults.report(starting, row, err)
	d.unstart(ctx, row, retryPause)
}

// putOff queues a task again that got ready too early, unless it was cancelled
// meanwhile.
func (d *Dispatcher) putOff(ctx context.Context, run *run, row task.Task, j task.Job) {
	d.queue.Release(run.item)
	d.finishing.Go(func() {
		defer d.queue.Done()
		defer d.stopAgain(ctx, run)
		defer d.over(run)
		if o, cancelled := run.neverBegun(j); cancelled {
			d.finish(ctx, row, j.Terms, o)
			return
		}
		d.unstart(ctx, row, 0)
	})
}

// unstart voids the intent of a run that never began, and queues the task again after a
// pause. The directory goes after the intent: of an intent without one nobody could say
// whether the run began.
func (d *Dispatcher) unstart(ctx context.Context, row task.Task, pause time.Duration) {
	var follow consequences
	err := d.persist(ctx, row, func() (err error) {
		follow, err = d.commit(context.WithoutCancel(ctx), func(tx *transaction) error {
			_, _, err := d.decideOn(tx, row.Seq, false, &core.Void{Task: row.Seq, Attempt: row.Attempt})
			return err
		})
		return err
	})
	if err != nil || len(follow.moves) == 0 {
		return
	}
	fault.Point("unstarted")
	d.removeRunDir(row, row.Attempt)
	if pause > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	d.onCommitted(ctx, follow)
}

// rest puts an item back into the queue after a pause.
func (d *Dispatcher) rest(ctx context.Context, it schedule.Item) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
		d.queue.Push(it)
	}
}

// retryPause is how long we wait before trying again what failed through no
// fault of the task: a full disk, a busy ledger.
const retryPause = time.Second

// prepare makes the intent to run a queued task durable. A Job without a RunID
// means there is nothing to run.
func (d *Dispatcher) prepare(ctx context.Context, it schedule.Item, run *run) (task.Task, task.Job, error) {
	row, job, err := d.admit(ctx, it)
	if err == nil && job.RunID == "" {
		err = d.dropRunDir(row)
	}
	if err != nil || job.RunID == "" {
		return row, task.Job{}, err
	}
	unknown, err := d.makeRunDir(&job)
	if err != nil {
		if unfit, ok := errors.AsType[*mailbox.UnfitError](err); ok {
			err = d.refuseUnfit(ctx, row, job, unfit)
		}
		return row, task.Job{}, err
	}
	fault.Point("run-dir")
	if len(unknown) > 0 {
		return row, task.Job{}, d.holdUnknown(ctx, row, job, unknown)
	}
	began, moved, err := d.intend(ctx, row, &job, task.Running)
	if err != nil {
		d.unused.keep(job.Dir)
		return row, task.Job{}, err
	}
	if !moved {
		return row, task.Job{}, nil
	}
	d.equip(ctx, run, began, &job)
	return began, job, nil
}

// refuseUnfit ends a task that cannot have a run directory, for something is in
// the way that only a person can remove.
func (d *Dispatcher) refuseUnfit(ctx context.Context, row task.Task, j task.Job, why *mailbox.UnfitError) error {
	d.log(row).Error().Err(why).Msg("run directory cannot be made")
	finding := envelope.Finding{Kind: envelope.InternalError, Message: "the run could not be prepared: " + why.Error()}
	return d.apply(ctx, row, j.Task, task.Verdict{Findings: envelope.Findings{finding}, Terms: j.Terms})
}

// admit judges a queued task once more, for time has passed, and makes the job
// of it that is next. A Job without a RunID means there is none.
func (d *Dispatcher) admit(ctx context.Context, it schedule.Item) (task.Task, task.Job, error) {
	row, t, findings, err := d.loadQueued(ctx, it)
	if err != nil || row.State != task.Queued {
		return row, task.Job{}, err
	}
	verdict := d.judge(t, findings, time.Now())
	cleared, err := d.cleared(ctx, row, verdict)
	if err != nil {
		return row, task.Job{}, err
	}
	if !cleared {
		return row, task.Job{}, d.apply(ctx, row, t, verdict)
	}
	if answered, err := d.foreign(ctx, row); answered || err != nil {
		return row, task.Job{}, err
	}
	if row.Parent != 0 {
		verdict.Terms = core.WithLineage(verdict.Terms, d.agents.Mode(envelope.ControlLineage))
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		RunID: uuid.NewString(), Terms: verdict.Terms,
	}
	if wantsApproval(verdict.Hold) {
		job.Digest = verdict.Digest
	}
	job.Conversation, err = d.history(ctx, row)
	return row, job, err
}

// load reads a task's row and decodes its envelope again.
func (d *Dispatcher) load(ctx context.Context, seq int64) (task.Task, envelope.Task, envelope.Findings, error) {
	row, err := d.Ledger.Task(ctx, seq)
	if err != nil {
		return row, envelope.Task{}, nil, err
	}
	raw, err := d.Ledger.Raw(ctx, seq)
	if err != nil {
		return row, envelope.Task{}, nil, err
	}
	t, findings, err := d.decodeRow(ctx, row, raw)
	return row, t, findings, err
}

// decodeRow decodes the envelope of a task's row.
func (d *Dispatcher) decodeRow(ctx context.Context, row task.Task, raw []byte) (envelope.Task, envelope.Findings, error) {
	t, findings := d.requestOf(row, raw)
	t.ID = row.ID // also when it was salvaged from a line that does not decode
	t, err := d.asAbove(ctx, row.Parent, t)
	return t, findings, err
}
