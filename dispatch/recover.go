package dispatch

import (
	"context"
	"errors"
	"math"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A recovery takes up what an earlier daemon left.
type recovery struct {
	*outbox.Base
	steps     *steps
	completer *exchange.Completer
	executor  *executor.Executor
	inbox     *inboxes
}

// recover takes up what an earlier daemon left. It is the only way to start,
// so the path of a crash is walked every day.
func (re *recovery) recover(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := re.Ledger.Unsettled(ctx, after, store.PageSize)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Status == envelope.Rejected { // there may be many, and nothing waits for them
				re.steps.showLater(row)
			} else {
				re.steps.resume(ctx, row)
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
	return errors.Join(re.Canceller.CancelAgain(ctx), re.Messenger.ResumeNotifications(ctx))
}

// recoverOpen takes up what is not done, in the order in which it was accepted.
func (re *recovery) recoverOpen(ctx context.Context) error {
	line := &queueCursor{}
	for after := int64(0); ; {
		rows, err := re.Ledger.Unfinished(ctx, after, store.PageSize)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := re.queueBefore(ctx, line, row.Seq); err != nil {
				return err
			}
			if err := re.resume(ctx, row); err != nil {
				return err
			}
			after = row.Seq
		}
		if len(rows) < store.PageSize {
			return re.queueBefore(ctx, line, math.MaxInt64)
		}
	}
}

// A queueCursor is how far the queued tasks of the ledger were read.
type queueCursor struct {
	unqueued []ledger.QueuedTask // read and not queued yet
	last     int64               // the Seq of the last one that was read
	complete bool                // all were read
}

// queueBefore queues the tasks that were accepted before a Seq.
func (re *recovery) queueBefore(ctx context.Context, line *queueCursor, before int64) error {
	for {
		for len(line.unqueued) > 0 && line.unqueued[0].Seq < before {
			t := line.unqueued[0]
			re.inbox.enqueue(task.Task{Seq: t.Seq, Agent: t.Agent, Requester: t.Requester})
			line.unqueued = line.unqueued[1:]
		}
		if line.complete || len(line.unqueued) > 0 {
			return nil
		}
		var err error
		if line.unqueued, err = re.Ledger.QueuedTasks(ctx, line.last, store.PageSize); err != nil {
			return err
		}
		if line.complete = len(line.unqueued) < store.PageSize; len(line.unqueued) > 0 {
			line.last = line.unqueued[len(line.unqueued)-1].Seq
		}
	}
}

// resume goes on with one unfinished task. A received one follows when the
// revision it waits for has ended, which comes earlier in the ledger.
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
	re.steps.resume(ctx, row)
	switch row.State {
	case task.Held:
		re.steps.reevaluateSoon(row) // the rules may be other ones by now
		if core.WaitsForWords(row) {
			re.completer.TryJoin(ctx, row.Seq)
		}
	case task.Review:
		re.completer.TryJoin(ctx, row.Seq)
	case task.Waiting:
		return re.inbox.reevaluateWaiting(ctx, row)
	}
	return nil
}
