package intake

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/fault"
	"mailboxd/mailbox"
)

// An Intake accepts the lines of task files.
type Intake struct {
	*outbox.Base
	Acceptor    *exchange.Acceptor
	Receiver    *exchange.Receiver
	Executor    *executor.Executor
	DeadLetters chan struct{} // signalled when the ledger has dead letters for their file
	Fresh       *executor.FreshTasks
	Tail        *mailbox.Tail
	RunFiles    *RunFiles
}

// runFilesEvery is after how many batches of the mailbox those of sandboxes have their turn, which
// also comes when the mailbox has no more.
const runFilesEvery = 16

// Look accepts all new lines, one batch per transaction. It reports paused when the queue is
// full. After an error the next look reads the failed batch again.
func (in *Intake) Look(ctx context.Context) (paused bool, err error) {
	replaced, err := in.Box.Refresh()
	if err != nil {
		return false, err
	}
	if replaced {
		in.Opts.Log.Warn().Str("root", in.Box.Path()).Msg("root directory was replaced; reading the new one")
		in.Publisher.RootReplaced()
	}
	var next *nextBatch
	defer func() { next.wait() }()
	var runs progress
	for n := 0; ctx.Err() == nil; n++ {
		if n%runFilesEvery == 0 {
			if runs, err = in.lookAtRuns(ctx); runs.paused || err != nil {
				return runs.paused, err
			}
		}
		if !in.Queue.HasRoom() {
			return true, nil
		}
		batch, err := in.Tail.Next()
		if err != nil {
			return false, err
		}
		if batch.Empty() && runs.more {
			n = -1 // their turn
			continue
		}
		if batch.Empty() {
			return false, in.Acceptor.RecoveryDone(ctx)
		}
		submissions, decoded := next.submissionsOf(batch)
		if !decoded {
			submissions = in.decode(batch.Lines, runtime.GOMAXPROCS(0))
		}
		next.wait()
		next = in.decodeAhead()
		if err := in.acceptBatch(ctx, batch, submissions); err != nil {
			return false, err // the next look reads the batch again
		}
		in.Tail.Done(batch)
	}
	return false, nil
}

// acceptBatch moves one batch into the ledger. The lines and the offset behind them are one
// transaction, so they can't disagree.
func (in *Intake) acceptBatch(ctx context.Context, batch mailbox.Batch, submissions []*exchange.Submission) error {
	in.judgeAll(submissions)
	if err := exchange.Unjudged(submissions); err != nil {
		return err
	}
	letters, start := deadLetters(submissions), in.fastStart(submissions)
	follow, err := in.Writer.Commit(ctx, func(tx *store.Transaction) error {
		if err := in.acceptLines(tx, batch, submissions, letters); err != nil || start == nil {
			return err
		}
		return in.begin(ctx, tx, start)
	})
	if err != nil {
		in.abandon(start)
		for _, c := range submissions {
			in.Runs.ForgetRefusal(c.Row.Seq)
		}
		return err
	}
	fault.Point("accepted")
	if len(letters) > 0 || slices.ContainsFunc(submissions, func(c *exchange.Submission) bool { return c.SignatureFault != "" }) {
		in.DeadLettersAdded()
	}
	if batch.Gone && !batch.Cursor.IsRunFile() {
		in.Opts.Log.Warn().Str("file", batch.Cursor.Path).Int64("offset", batch.Cursor.Offset).Msg("task file is gone; lines behind this offset, if any, were not read")
	}
	start = in.confirm(start)
	for _, c := range submissions {
		in.logDisposition(c)
		if after, moved := follow.After(c.Row.Seq); moved && after.State == task.Queued {
			in.Fresh.Keep(c) // before a worker needs it
		}
	}
	in.Writer.OnCommitted(ctx, follow)
	in.handOver(start)
	return nil
}

// acceptLines accepts the lines of a batch in a transaction, with their dead letters and the
// offset behind them.
func (in *Intake) acceptLines(tx *store.Transaction, batch mailbox.Batch, submissions []*exchange.Submission, letters [][]byte) error {
	known, err := exchange.LookUpIDs(tx, submissions)
	if err != nil {
		return err
	}
	for _, c := range submissions {
		if err := in.acceptOne(tx, known, c); err != nil {
			return fmt.Errorf("accept %s at %d: %w", c.Line.File, c.Line.Offset, err)
		}
	}
	for _, line := range letters {
		if err := tx.AddDeadLetter(line); err != nil {
			return err
		}
	}
	for _, c := range slices.Concat(batch.More, []mailbox.Cursor{batch.Cursor}) {
		if err := tx.SetFile(ledger.File(c)); err != nil {
			return err
		}
	}
	if batch.Gone && !batch.Cursor.IsRunFile() { // the file of a run goes once it is read
		return tx.Log(fileGone(batch.Cursor))
	}
	return nil
}

// acceptOne accepts one request or message.
func (in *Intake) acceptOne(tx *store.Transaction, known *exchange.KnownIDs, c *exchange.Submission) error {
	if c.Inbound == nil {
		return in.Acceptor.Accept(tx, known, c)
	}
	known.Stale = true
	return in.Receiver.Receive(tx, c)
}

// judgeAll judges submissions, on all processors when there are many. Messages of other
// dialects may query the ledger, so all earlier lines must be committed.
func (in *Intake) judgeAll(submissions []*exchange.Submission) {
	inParts(submissions, runtime.GOMAXPROCS(0), func(_ int, part []*exchange.Submission) {
		for _, c := range part {
			c.Now = time.Now()
			switch {
			case in.Receiver.CheckSignature(c):
			case c.Inbound != nil:
				in.Receiver.JudgeMessage(c)
			default:
				c.Judged = in.Acceptor.HoldRecovered(c.Task, in.Reader.Judge(c.Task, c.DecodeFindings, c.Now))
			}
			c.Verdict = c.Judged
			if !c.Verdict.Admit && c.Task.ID != "" {
				c.Refuse()
			}
		}
	})
}

// logDisposition logs what the ledger made of a submission, once that is durable.
func (in *Intake) logDisposition(c *exchange.Submission) {
	switch c.Disposition {
	case exchange.Unnamed:
		// The findings quote the line, which may hold any content: rejected/ has them with the
		// line.
		in.Opts.Log.Warn().Str("file", c.Line.File).Int64("offset", c.Line.Offset).
			Str("reason", string(c.Verdict.Findings.Kind())).Msg("line rejected")
	case exchange.Duplicate:
		in.Log(c.Row).Debug().Str("task_id", string(c.Task.ID)).Msg("duplicate ignored")
	case exchange.Conflict:
		in.Log(c.Row).Warn().Str("task_id", string(c.Task.ID)).Msg("other content for an executed id refused")
	case exchange.Received:
		in.Log(c.Row).Debug().Str("act", string(c.Inbound.Message.Act)).Msg("message received")
	case exchange.Accepted:
		if !slices.Contains(c.Judged.Hold, task.Recovered) { // otherwise one message covers all of them
			in.Acceptor.WarnUnknown(c.Row, c.Unknown)
		}
		for _, member := range c.Members {
			in.logDisposition(member)
		}
	}
}

// fileGone returns the event of a task file that is gone, perhaps with unread lines.
func fileGone(c mailbox.Cursor) task.Event {
	return store.Event(task.Task{}, task.KindFileGone, map[string]any{"file": c.Path, "offset": c.Offset})
}
