package dispatch

import (
	"context"
	"fmt"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/fault"
)

// inboxes delivers tasks to the inboxes from which agents fetch them.
type inboxes struct {
	*outbox.Base
	placed     *exchange.PlacedResults
	executor   *executor.Executor
	deliveries *schedule.DutyQueue // tasks to deliver to the inboxes of their agents
}

// enqueue queues an admitted task for a slot, or for delivery to the inbox of its agent, which
// needs no slot.
func (ib *inboxes) enqueue(row task.Task) {
	if ib.Agents.Inbox(row.Agent).File == "" {
		ib.Queue.Push(schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester, Priority: row.Priority})
		return
	}
	ib.enqueueDelivery(row.Seq)
}

// enqueueDelivery queues a task for delivery to its agent's inbox.
func (ib *inboxes) enqueueDelivery(seq int64) {
	ib.Queue.AddBlocked()
	ib.deliveries.Add(seq)
}

// deliverAll delivers one task after another until ctx ends. It pauses after an error that
// concerns all tasks.
func (ib *inboxes) deliverAll(ctx, work context.Context) {
	for {
		seq, ok := ib.deliveries.Next(ctx)
		if !ok {
			return
		}
		row, err := ib.deliver(work, seq)
		if err != nil && ctx.Err() == nil {
			ib.FaultLog.Report(store.Starting, row, err)
			select {
			case <-ctx.Done():
			case <-time.After(store.RetryPause):
				ib.enqueueDelivery(seq) // by seq: the row may be unread
			}
		}
		ib.Queue.RemoveBlocked()
		ib.deliveries.Done(1)
	}
}

// deliver records that an admitted task waits for its agent; the line is appended to the inbox
// after that. It takes no slot and makes no run directory.
func (ib *inboxes) deliver(ctx context.Context, seq int64) (task.Task, error) {
	row, job, err := ib.executor.Admit(ctx, schedule.Item{Seq: seq})
	if err != nil || job.RunID == "" {
		return row, err
	}
	if ib.Agents.Inbox(row.Agent).File == "" {
		ib.enqueue(row) // the agent is run from now on
		return row, nil
	}
	job.Attempt++
	began, moved, err := ib.executor.Intend(ctx, row, &job, task.Waiting)
	if err != nil || !moved {
		return row, err
	}
	fault.Point("inbox-intent")
	ib.FaultLog.Clear(store.Starting)
	ib.Log(row).Info().Int("attempt", job.Attempt).Msg("task waits for its agent to fetch it")
	return began, nil
}

// checkWaiting is reevaluateWaiting for callers that can't handle an error.
func (ib *inboxes) checkWaiting(ctx context.Context, row task.Task) {
	if err := ib.reevaluateWaiting(ctx, row); err != nil && ctx.Err() == nil {
		ib.FaultLog.Report(store.Judging, row, err)
		ib.Timers.After(row.Seq, store.RetryPause)
	}
}

// reevaluateWaiting does what is due for a waiting task: it takes a result file as its answer,
// ends the task at its deadline, ends a lease that lapsed, and appends the task's line to the
// inbox. It may be called at any time, and is called at least once after a start.
func (ib *inboxes) reevaluateWaiting(ctx context.Context, row task.Task) error {
	if answered, err := ib.placed.HandleFile(ctx, row); answered || err != nil {
		return err
	}
	run, err := ib.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	now := time.Now()
	if core.IsPast(run.Terms.Deadline, now) {
		return ib.endOverdue(ctx, row, run)
	}
	if !row.Until.IsZero() && !row.ClaimedAt(now) {
		if row, err = ib.endLease(ctx, row); err != nil {
			return err
		}
	}
	ib.LookAt(row, core.Earliest(run.Terms.Deadline, row.Until))
	ib.putInInbox(ctx, row)
	return nil
}

// putInInbox appends a task's line to the inbox of its agent, once. A crash before the mark is
// durable appends it twice.
func (ib *inboxes) putInInbox(ctx context.Context, row task.Task) {
	own := "task " + string(row.ID) + " cannot be put into the inbox of its agent"
	if err := ib.appendOnce(ctx, row); err != nil {
		ib.FaultLog.Report(own, row, err)
		ib.Timers.After(row.Seq, store.SettlePause)
		return
	}
	ib.FaultLog.Clear(own)
}

func (ib *inboxes) appendOnce(ctx context.Context, row task.Task) error {
	defer ib.ResultLocks.Lock(row.ID)()
	delivery, err := ib.Ledger.Delivery(ctx, row.Seq)
	if err != nil || !delivery.Appended.IsZero() {
		return err
	}
	now, err := ib.Ledger.Task(ctx, row.Seq)
	inbox := ib.Agents.Inbox(row.Agent)
	if err != nil || now.State != task.Waiting || inbox.File == "" {
		return err // no agent fetches it any more
	}
	raw, err := ib.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return err
	}
	line, err := ib.Messenger.InboxLine(now, raw)
	if err == nil {
		err = ib.Box.AppendInbox(inbox.File, line)
	}
	if err != nil {
		return err
	}
	fault.Point("inbox-appended")
	return ib.Writer.Update(ctx, func(tx *store.Transaction) error { return tx.MarkAppended(row.Seq, time.Now()) })
}

// endOverdue ends a task that has no answer by its deadline.
func (ib *inboxes) endOverdue(ctx context.Context, row task.Task, run task.Run) error {
	_, t, _, err := ib.Reader.Load(ctx, row.Seq)
	if err != nil {
		return err
	}
	why := fmt.Sprintf("agent %q did not answer it by %s", row.Agent, run.Terms.Deadline.UTC().Format(time.RFC3339))
	result := core.NotAnswered(t, run, envelope.Failed, envelope.DeadlineExceeded, why, time.Now())
	o := task.Outcome{Result: result, Exit: task.Exit{Code: -1, Cause: task.CauseDeadline, Started: run.Started, Finished: result.Time.Finished, Wall: result.Time.Wall}}
	return ib.placed.EndWaiting(ctx, row, task.Terms{}, o, task.Event{}, nil)
}
