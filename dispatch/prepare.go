package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// prepare makes the intent to run a queued task durable. A Job without a RunID
// means there is nothing to run.
func (x *executor) prepare(ctx context.Context, it schedule.Item, run *run) (task.Task, task.Job, error) {
	row, job, err := x.admit(ctx, it)
	if err == nil && job.RunID == "" {
		err = x.dropRunDir(row)
	}
	if err != nil || job.RunID == "" {
		return row, task.Job{}, err
	}
	unknown, err := x.makeRunDir(&job)
	if err != nil {
		if unfit, ok := errors.AsType[*mailbox.UnfitError](err); ok {
			err = x.refuseUnfit(ctx, row, job, unfit)
		}
		return row, task.Job{}, err
	}
	fault.Point("run-dir")
	if len(unknown) > 0 {
		return row, task.Job{}, x.acceptor.holdUnknown(ctx, row, job, unknown)
	}
	began, moved, err := x.intend(ctx, row, &job, task.Running)
	if err != nil {
		x.unused.keep(job.Dir)
		return row, task.Job{}, err
	}
	if !moved {
		return row, task.Job{}, nil
	}
	x.equip(ctx, run, began, &job)
	return began, job, nil
}

// admit judges a queued task once more, for time has passed, and makes the job
// of it that is next. A Job without a RunID means there is none.
func (x *executor) admit(ctx context.Context, it schedule.Item) (task.Task, task.Job, error) {
	row, t, findings, err := x.loadQueued(ctx, it)
	if err != nil || row.State != task.Queued {
		return row, task.Job{}, err
	}
	verdict := x.reader.judge(t, findings, time.Now())
	cleared, err := x.reader.cleared(ctx, row, verdict)
	if err != nil {
		return row, task.Job{}, err
	}
	if !cleared {
		return row, task.Job{}, x.reader.apply(ctx, row, t, verdict)
	}
	if answered, err := x.placed.foreign(ctx, row); answered || err != nil {
		return row, task.Job{}, err
	}
	if row.Parent != 0 {
		verdict.Terms = core.WithLineage(verdict.Terms, x.agents.Mode(envelope.ControlLineage))
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		RunID: uuid.NewString(), Terms: verdict.Terms,
	}
	if wantsApproval(verdict.Hold) {
		job.Digest = verdict.Digest
	}
	job.Conversation, err = x.history.messages(ctx, row)
	return row, job, err
}

// A start is a task that begins in the transaction that accepts it: one commit
// less lies between a line and its run, which is half a millisecond. That is for
// a line that comes alone to a free slot, asks for nothing that has to be looked
// into once more, and is for an agent whose runs have directories: one that is
// never begun after all is known by its directory.
type start struct {
	item       schedule.Item
	submission *submission
	job        task.Job
	run        *run // nil: it does not begin, and is accepted like any other
}

// turnAway holds what waits in the queue for an agent that is paused, many tasks
// in a commit. One by one, each by a worker, 90,000 took 90,000 commits.
func (x *executor) turnAway(ctx context.Context, agent string) {
	if !x.pauses.turning.TryLock() {
		return
	}
	defer x.pauses.turning.Unlock()
	for ctx.Err() == nil && x.pauses.has(agent) {
		items := x.queue.TakeBack(agent, manyMoves)
		if len(items) == 0 {
			return
		}
		sideBySide(items, func(it schedule.Item) {
			defer x.queue.Done()
			x.holdBack(ctx, it)
		})
	}
}

// holdBack holds a queued task of an agent that is paused.
func (x *executor) holdBack(ctx context.Context, it schedule.Item) {
	row, t, findings, err := x.loadQueued(ctx, it)
	if err == nil && row.State != task.Queued {
		return
	}
	cleared := false
	if err == nil {
		verdict := x.reader.judge(t, findings, time.Now())
		if cleared, err = x.reader.cleared(ctx, row, verdict); err == nil && !cleared {
			err = x.reader.apply(ctx, row, t, verdict)
		}
	}
	switch {
	case cleared:
		x.queue.Push(it) // it was resumed meanwhile
	case err != nil && ctx.Err() == nil:
		x.faults.report(judging, row, err)
		x.rest(ctx, it)
	}
}

// needlesslyPaused reports whether a task is held for a pause that is over.
func (x *executor) needlesslyPaused(row task.Task) bool {
	return row.State == task.Held && slices.Contains(row.Reasons, task.Paused) && !x.pauses.has(row.Agent)
}

// manyMoves is how many tasks are moved side by side, so that they share commits.
const manyMoves = 64

// sideBySide calls do for each of a list, for many at a time, in about its order.
func sideBySide[T any](list []T, do func(T)) {
	for part := range slices.Chunk(list, manyMoves) {
		var moving sync.WaitGroup
		for _, one := range part {
			moving.Go(func() { do(one) })
		}
		moving.Wait()
	}
}
