package executor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/fault"
	"mailboxd/mailbox"
)

// A Preparer judges the next tasks, and makes the intents to run them durable.
type Preparer struct {
	*outbox.Base
	Acceptor *exchange.Acceptor
	Placed   *exchange.PlacedResults
	Fresh    *FreshTasks
}

// prepare makes the intent to run a queued task durable. It returns a Job without a RunID when
// there is nothing to run.
func (p *Preparer) prepare(ctx context.Context, it schedule.Item, run *store.Run) (task.Task, task.Job, error) {
	row, job, err := p.Admit(ctx, it)
	if err == nil && job.RunID == "" {
		err = p.dropRunDir(row)
	}
	if err != nil || job.RunID == "" {
		return row, task.Job{}, err
	}
	unknown, err := p.makeRunDir(&job)
	if err == nil && it.Remote && len(unknown) == 0 {
		job.At, err = p.assign(it, row, job)
	}
	if err != nil {
		if unfitErr, ok := errors.AsType[*mailbox.UnfitError](err); ok {
			err = p.holdObstructed(ctx, row, unfitErr)
		}
		if unfit, ok := errors.AsType[*schedule.UnfitError](err); ok {
			err = p.holdUnplaced(ctx, row, unfit)
		}
		return row, task.Job{}, err
	}
	fault.Point("run-dir")
	if len(unknown) > 0 {
		return row, task.Job{}, p.Acceptor.HoldUnknown(ctx, row, job, unknown)
	}
	began, moved, err := p.Intend(ctx, row, &job, task.Running)
	if err != nil {
		if !it.Remote {
			p.Unused.Keep(job.Dir)
		}
		return row, task.Job{}, err
	}
	if !moved {
		return row, task.Job{}, nil
	}
	p.addReports(ctx, run, began, &job)
	return began, job, nil
}

// Admit judges a queued task again, since time has passed, and makes its next job. It returns a
// Job without a RunID when there is none.
func (p *Preparer) Admit(ctx context.Context, it schedule.Item) (task.Task, task.Job, error) {
	row, t, findings, err := p.loadQueued(ctx, it)
	if err != nil || !isOf(it, row) {
		return row, task.Job{}, err
	}
	verdict := p.Reader.Judge(t, findings, time.Now())
	cleared, err := p.Reader.Cleared(ctx, row, verdict)
	if err != nil {
		return row, task.Job{}, err
	}
	if !cleared {
		return row, task.Job{}, p.Reader.Apply(ctx, row, t, verdict)
	}
	if answered, err := p.Placed.HandleFile(ctx, row); answered || err != nil {
		return row, task.Job{}, err
	}
	if row.Parent != 0 {
		verdict.Terms = core.WithLineage(verdict.Terms, p.Agents.Mode(envelope.ControlLineage))
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		RunID: uuid.NewString(), Terms: verdict.Terms,
	}
	if core.WantsApproval(verdict.Hold) {
		job.Digest, job.Plan = verdict.Digest, verdict.Plan
	}
	job.Conversation, err = p.History.Messages(ctx, row)
	return row, job, err
}

// isOf reports whether an item is the one of a queued task. A task that was taken back from its
// chosen agent leaves an item there; it starts in a slot of its new agent.
func isOf(it schedule.Item, row task.Task) bool {
	return row.State == task.Queued && (it.Agent == "" || it.Agent == row.Agent)
}

// A Start is a task that begins in the transaction that accepts it. This saves one commit, half
// a millisecond, between a line and its run. The line must arrive alone, find a free slot, need
// no further check, and be for an agent whose runs have directories: the directory shows a run
// that never began.
type Start struct {
	Item       schedule.Item
	Submission *exchange.Submission
	Job        task.Job
	Run        *store.Run // nil: it does not begin, and is accepted like any other
}

// holdPaused holds the queued tasks of an agent that may start nothing, many in a commit. 90,000
// tasks, held one by one by workers, took 90,000 commits.
func (p *Preparer) holdPaused(ctx context.Context, agent string) {
	if !p.Pauses.Holding.TryLock() {
		return
	}
	defer p.Pauses.Holding.Unlock()
	var mayStart atomic.Bool // a task that was released from a limit
	for ctx.Err() == nil && p.Pauses.Blocks(agent) && !mayStart.Load() {
		items := p.Queue.TakeBack(agent, maxParallel)
		if len(items) == 0 {
			return
		}
		InParallel(items, func(it schedule.Item) {
			defer p.Queue.Done()
			if p.holdOne(ctx, it) {
				mayStart.Store(true)
			}
		})
	}
}

// holdOne holds a queued task of an agent that may start nothing. It reports whether the task
// may start nevertheless.
func (p *Preparer) holdOne(ctx context.Context, it schedule.Item) (mayStart bool) {
	row, t, findings, err := p.loadQueued(ctx, it)
	if err == nil && !isOf(it, row) {
		return false
	}
	cleared := false
	if err == nil {
		verdict := p.Reader.Judge(t, findings, time.Now())
		if cleared, err = p.Reader.Cleared(ctx, row, verdict); err == nil && !cleared {
			err = p.Reader.Apply(ctx, row, t, verdict)
		}
	}
	switch {
	case cleared:
		p.Queue.Push(it) // the agent was resumed meanwhile
	case err != nil && ctx.Err() == nil:
		p.FaultLog.Report(store.Judging, row, err)
		p.requeueLater(ctx, it)
	}
	return cleared
}

// NeedlesslyPaused reports whether a task is held for a pause or a limit that is over.
func (p *Preparer) NeedlesslyPaused(row task.Task) bool {
	if row.State != task.Held {
		return false
	}
	_, limited := p.Pauses.Limits.Holds(row.Agent, row.ID, time.Now())
	return slices.Contains(row.Reasons, task.Paused) && !p.Pauses.Has(row.Agent) ||
		slices.Contains(row.Reasons, task.ProviderLimit) && !limited
}

// maxParallel is how many tasks are moved in parallel, so that they share commits.
const maxParallel = 64

// InParallel calls do for each element of a list, many at a time, in roughly the order of the
// list.
func InParallel[T any](list []T, do func(T)) {
	for part := range slices.Chunk(list, maxParallel) {
		var moving sync.WaitGroup
		for _, item := range part {
			moving.Go(func() { do(item) })
		}
		moving.Wait()
	}
}

// holdObstructed holds a task that can't have a run directory until Release, because only a person
// can move away what is in its place.
func (p *Preparer) holdObstructed(ctx context.Context, row task.Task, why *mailbox.UnfitError) error {
	c := &core.HoldQueued{Task: row.Seq, Attempt: row.Attempt, Reason: task.RunDirectory, Why: why.Reason}
	held, err := p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), c)
	if held {
		p.Log(row).Error().Err(why).Msg("run directory cannot be made; task held until it is released")
	}
	return err
}

// addReports lets a run report its spending and its progress.
func (p *Preparer) addReports(ctx context.Context, run *store.Run, row task.Task, j *task.Job) {
	p.Meters.Measure(run, row, j)
	j.Report = p.Messenger.Reporting(ctx, row)
	p.addCalls(ctx, row, j)
	p.addReach(ctx, row, j)
}

// requeueLater puts an item back into the queue after a pause.
func (p *Preparer) requeueLater(ctx context.Context, it schedule.Item) {
	select {
	case <-ctx.Done():
	case <-time.After(store.RetryPause):
		p.Queue.Push(it)
	}
}
