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
	steps      *steps
	completion *exchange.Completion
	executor   *executor.Executor
	inbox      *inboxes
}

// recover takes up what an earlier daemon left. It is the only way to start,
// so the path of a crash is walked every day.
func (re *recovery) recover(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := re.Ledger.Unsettled(ctx, after, store.Page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Status == envelope.Rejected { // there may be many, and nothing waits for them
				re.steps.showLater(row)
			} else {
				re.steps.proceed(ctx, row)
			}
			after = row.Seq
		}
		if len(rows) < store.Page {
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
	line := &turnLine{}
	for after := int64(0); ; {
		rows, err := re.Ledger.Unfinished(ctx, after, store.Page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := re.queueTurns(ctx, line, row.Seq); err != nil {
				return err
			}
			if err := re.resume(ctx, row); err != nil {
				return err
			}
			after = row.Seq
		}
		if len(rows) < store.Page {
			return re.queueTurns(ctx, line, math.MaxInt64)
		}
	}
}

// A turnLine is how far the ledger's Turns were queued.
type turnLine struct {
	turns []ledger.Turn // read and not queued yet
	last  int64         // the Seq of the last one that was read
	whole bool          // all were read
}

// queueTurns queues the Turns that were accepted before a Seq.
func (re *recovery) queueTurns(ctx context.Context, line *turnLine, before int64) error {
	for {
		for len(line.turns) > 0 && line.turns[0].Seq < before {
			t := line.turns[0]
			re.inbox.queueUp(task.Task{Seq: t.Seq, Agent: t.Agent, Requester: t.Requester})
			line.turns = line.turns[1:]
		}
		if line.whole || len(line.turns) > 0 {
			return nil
		}
		var err error
		if line.turns, err = re.Ledger.Turns(ctx, line.last, store.Page); err != nil {
			return err
		}
		if line.whole = len(line.turns) < store.Page; len(line.turns) > 0 {
			line.last = line.turns[len(line.turns)-1].Seq
		}
	}
}

// resume goes on with one unfinished task. A received one follows when the
// revision it waits for has ended, which comes earlier in the ledger.
func (re *recovery) resume(ctx context.Context, row task.Task) error {
	if err := re.Canceller.RecoverTies(ctx, row); err != nil {
		return err
	}
	switch row.State {
	case task.Running:
		return re.executor.RecoverRun(ctx, row)
	case task.Received:
		return re.steps.tryAdmitNext(ctx, row.ID)
	}
	re.steps.proceed(ctx, row)
	switch row.State {
	case task.Held:
		re.steps.rejudge(row) // the rules may be other ones by now
		if core.WaitsForWords(row) {
			re.completion.JoinNow(ctx, row.Seq)
		}
	case task.Review:
		re.completion.JoinNow(ctx, row.Seq)
	case task.Waiting:
		return re.inbox.tend(ctx, row)
	}
	return nil
}
