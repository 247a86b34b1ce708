package executor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A Preparer judges the tasks that are next, and makes the intent to run them durable.
type Preparer struct {
	*outbox.Base
	Acceptor *exchange.Acceptor
	Placed   *exchange.PlacedResults
	Fresh    *Fresh
	Waits    *BudgetWaiters
}

// prepare makes the intent to run a queued task durable. A Job without a RunID
// means there is nothing to run.
func (p *Preparer) prepare(ctx context.Context, it schedule.Item, run *store.Run) (task.Task, task.Job, error) {
	row, job, err := p.Admit(ctx, it)
	if err == nil && job.RunID == "" {
		err = p.dropRunDir(row)
	}
	if err != nil || job.RunID == "" {
		return row, task.Job{}, err
	}
	unknown, err := p.makeRunDir(&job)
	if err != nil {
		if unfit, ok := errors.AsType[*mailbox.UnfitError](err); ok {
			err = p.refuseUnfit(ctx, row, job, unfit)
		}
		return row, task.Job{}, err
	}
	fault.Point("run-dir")
	if len(unknown) > 0 {
		return row, task.Job{}, p.Acceptor.HoldUnknown(ctx, row, job, unknown)
	}
	began, moved, err := p.Intend(ctx, row, &job, task.Running)
	if err != nil {
		p.Unused.Keep(job.Dir)
		return row, task.Job{}, err
	}
	if !moved {
		return row, task.Job{}, nil
	}
	p.equip(ctx, run, began, &job)
	return began, job, nil
}

// Admit judges a queued task once more, for time has passed, and makes the job
// of it that is next. A Job without a RunID means there is none.
func (p *Preparer) Admit(ctx context.Context, it schedule.Item) (task.Task, task.Job, error) {
	row, t, findings, err := p.loadQueued(ctx, it)
	if err != nil || row.State != task.Queued {
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
	if store.WantsApproval(verdict.Hold) {
		job.Digest = verdict.Digest
	}
	job.Conversation, err = p.History.Messages(ctx, row)
	return row, job, err
}

// A Start is a task that begins in the transaction that accepts it: one commit
// less lies between a line and its run, which is half a millisecond. That is for
// a line that comes alone to a free slot, asks for nothing that has to be looked
// into once more, and is for an agent whose runs have directories: one that is
// never begun after all is known by its directory.
type Start struct {
	Item       schedule.Item
	Submission *exchange.Submission
	Job        task.Job
	Run        *store.Run // nil: it does not begin, and is accepted like any other
}

// turnAway holds what waits in the queue for an agent that is paused, many tasks
// in a commit. One by one, each by a worker, 90,000 took 90,000 commits.
func (p *Preparer) turnAway(ctx context.Context, agent string) {
	if !p.Pauses.Holding.TryLock() {
		return
	}
	defer p.Pauses.Holding.Unlock()
	for ctx.Err() == nil && p.Pauses.Has(agent) {
		items := p.Queue.TakeBack(agent, manyMoves)
		if len(items) == 0 {
			return
		}
		SideBySide(items, func(it schedule.Item) {
			defer p.Queue.Done()
			p.holdBack(ctx, it)
		})
	}
}

// holdBack holds a queued task of an agent that is paused.
func (p *Preparer) holdBack(ctx context.Context, it schedule.Item) {
	row, t, findings, err := p.loadQueued(ctx, it)
	if err == nil && row.State != task.Queued {
		return
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
		p.Queue.Push(it) // it was resumed meanwhile
	case err != nil && ctx.Err() == nil:
		p.FaultLog.Report(store.Judging, row, err)
		p.rest(ctx, it)
	}
}

// NeedlesslyPaused reports whether a task is held for a pause that is over.
func (p *Preparer) NeedlesslyPaused(row task.Task) bool {
	return row.State == task.Held && slices.Contains(row.Reasons, task.Paused) && !p.Pauses.Has(row.Agent)
}

// manyMoves is how many tasks are moved side by side, so that they share commits.
const manyMoves = 64

// SideBySide calls do for each of a list, for many at a time, in about its order.
func SideBySide[T any](list []T, do func(T)) {
	for part := range slices.Chunk(list, manyMoves) {
		var moving sync.WaitGroup
		for _, one := range part {
			moving.Go(func() { do(one) })
		}
		moving.Wait()
	}
}

// refuseUnfit ends a task that cannot have a run directory, for something is in
// the way that only a person can remove.
func (p *Preparer) refuseUnfit(ctx context.Context, row task.Task, j task.Job, why *mailbox.UnfitError) error {
	p.Log(row).Error().Err(why).Msg("run directory cannot be made")
	finding := envelope.Finding{Kind: envelope.InternalError, Message: "the run could not be prepared: " + why.Error()}
	return p.Reader.Apply(ctx, row, j.Task, task.Verdict{Findings: envelope.Findings{finding}, Terms: j.Terms})
}

// equip lets a run say what it spends and how far it is.
func (p *Preparer) equip(ctx context.Context, run *store.Run, row task.Task, j *task.Job) {
	p.Meters.Measure(run, row, j)
	j.Report = p.Messenger.Reporting(ctx, row)
}

// rest puts an item back into the queue after a pause.
func (p *Preparer) rest(ctx context.Context, it schedule.Item) {
	select {
	case <-ctx.Done():
	case <-time.After(store.RetryPause):
		p.Queue.Push(it)
	}
}
