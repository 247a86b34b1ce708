package dispatch

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// recovery continues the tasks that an earlier daemon left.
type recovery struct {
	*outbox.Base
	steps     *steps
	completer *exchange.Completer
	executor  *executor.Executor
	inbox     *inboxes
}

// recover continues the tasks that an earlier daemon left. Every start uses it, so each start
// tests the recovery from a crash.
func (re *recovery) recover(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := re.Ledger.Unsettled(ctx, after, store.PageSize)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Status == envelope.Rejected { // there may be many, and no task waits for them
				re.steps.publishLater(row)
			} else {
				re.steps.advance(ctx, row)
			}
			after = row.Seq
		}
		if len(rows) < store.PageSize {
			break
		}
	}
	if err := re.recoverOpen(ctx); err != nil {
		return err
	}
	re.steps.router.wakeAll() // the rules may have changed
	return errors.Join(re.Canceller.CancelAgain(ctx), re.Messenger.ResumeNotifications(ctx))
}

// recoverOpen continues all open tasks in the order of their acceptance.
func (re *recovery) recoverOpen(ctx context.Context) error {
	cursor := &queueCursor{}
	for row, err := range re.Reader.Unfinished(ctx) {
		if err == nil {
			err = re.queueBefore(ctx, cursor, row.Seq)
		}
		if err == nil {
			err = re.resume(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return re.queueBefore(ctx, cursor, math.MaxInt64)
}

// A queueCursor is the position up to which the queued tasks of the ledger are read.
type queueCursor struct {
	unqueued []ledger.QueuedTask // read, not queued yet
	last     int64               // the Seq of the last task read
	complete bool                // all are read
}

// queueBefore queues the tasks that were accepted before a Seq.
func (re *recovery) queueBefore(ctx context.Context, cursor *queueCursor, before int64) error {
	for {
		for len(cursor.unqueued) > 0 && cursor.unqueued[0].Seq < before {
			t := cursor.unqueued[0]
			re.inbox.enqueue(task.Task{Seq: t.Seq, Agent: t.Agent, Requester: t.Requester})
			cursor.unqueued = cursor.unqueued[1:]
		}
		if cursor.complete || len(cursor.unqueued) > 0 {
			return nil
		}
		var err error
		if cursor.unqueued, err = re.Ledger.QueuedTasks(ctx, cursor.last, store.PageSize); err != nil {
			return err
		}
		if cursor.complete = len(cursor.unqueued) < store.PageSize; len(cursor.unqueued) > 0 {
			cursor.last = cursor.unqueued[len(cursor.unqueued)-1].Seq
		}
	}
}

// resume continues one unfinished task. A received task continues when the revision that it
// waits for has ended, which has a lower Seq.
func (re *recovery) resume(ctx context.Context, row task.Task) error {
	if err := re.Canceller.RecoverDependents(ctx, row); err != nil {
		return err
	}
	switch row.State {
	case task.Running:
		return re.executor.RecoverRun(ctx, row)
	case task.Received:
		return re.steps.tryAdmitNext(ctx, row.ID)
	}
	if row.State == task.Held && slices.Contains(row.Reasons, task.ProviderLimit) {
		re.Pauses.Limits.Restore(row.Agent, row.Until, time.Now())
	}
	re.steps.enter(row)
	re.steps.advance(ctx, row)
	switch row.State {
	case task.Held:
		re.steps.reevaluateSoon(row) // the rules may have changed
		if conversation.Suspended(row) || conversation.Follows(row) {
			re.completer.TryJoin(ctx, row.Seq)
		}
	case task.Review:
		re.completer.TryJoin(ctx, row.Seq)
	case task.Waiting:
		return re.inbox.reevaluateWaiting(ctx, row)
	}
	return nil
}
