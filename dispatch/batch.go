package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// An intake takes lines in.
type intake struct {
	*base
	acceptor    *acceptor
	receiver    *receiver
	executor    *executor
	deadLetters chan struct{} // signalled when the ledger has dead letters for their file
	fresh       *fresh
	tail        *mailbox.Tail
}

func (in *intake) look(ctx context.Context) (paused bool, err error) {
	replaced, err := in.Box.Refresh()
	if err != nil {
		return false, err
	}
	if replaced {
		in.opts.Log.Warn().Str("root", in.Box.Path()).Msg("root directory was replaced; going on in the new one")
		in.publisher.rootReplaced()
	}
	var next *coming
	defer func() { next.wait() }()
	for ctx.Err() == nil {
		if !in.queue.HasRoom() {
			return true, nil
		}
		batch, err := in.tail.Next()
		if err != nil {
			return false, err
		}
		if batch.Empty() {
			return false, in.acceptor.metAgain(ctx)
		}
		submissions, decoded := next.submissionsOf(batch)
		if !decoded {
			submissions = in.decode(batch.Lines, runtime.GOMAXPROCS(0))
		}
		next.wait()
		next = in.decodeAhead()
		if err := in.take(ctx, batch, submissions); err != nil {
			return false, err // the batch comes again
		}
		in.tail.Done(batch)
	}
	return false, nil
}

// take moves one batch into the ledger. The lines and the offset behind them
// are one transaction, so neither can be remembered without the other.
func (in *intake) take(ctx context.Context, batch mailbox.Batch, submissions []*submission) error {
	in.judgeAll(submissions)
	if err := unjudged(submissions); err != nil {
		return err
	}
	letters, start := deadLetters(submissions), in.startAtOnce(submissions)
	follow, err := in.writer.commit(ctx, func(tx *transaction) error {
		if err := in.takeIn(tx, batch, submissions, letters); err != nil || start == nil {
			return err
		}
		return in.begin(ctx, tx, start)
	})
	if err != nil {
		in.abandon(start)
		for _, c := range submissions {
			in.runs.forgetRefusal(c.row.Seq)
		}
		return err
	}
	fault.Point("accepted")
	if len(letters) > 0 {
		in.deadLettersAdded()
	}
	if batch.Gone {
		in.opts.Log.Warn().Str("file", batch.Cursor.Path).Int64("offset", batch.Cursor.Offset).Msg("task file is gone; lines behind this offset, if any, were not read")
	}
	start = in.confirm(start)
	for _, c := range submissions {
		in.logTaken(c)
		if c.fate == accepted {
			in.fresh.keep(c) // before a worker looks for it
		}
	}
	in.writer.onCommitted(ctx, follow)
	in.handOver(start)
	return nil
}

// takeIn accepts the lines of a batch in a transaction, which also has their dead
// letters and the offset behind them.
func (in *intake) takeIn(tx *transaction, batch mailbox.Batch, submissions []*submission, letters [][]byte) error {
	known, err := lookUp(tx, submissions)
	if err != nil {
		return err
	}
	for _, c := range submissions {
		if err := in.takeClaim(tx, known, c); err != nil {
			return fmt.Errorf("accept %s at %d: %w", c.line.File, c.line.Offset, err)
		}
	}
	for _, line := range letters {
		tx.AddDeadLetter(line)
	}
	tx.SetFile(ledger.File(batch.Cursor))
	for _, c := range batch.More {
		tx.SetFile(ledger.File(c))
	}
	if batch.Gone {
		return tx.Log(fileGone(batch.Cursor))
	}
	return nil
}

// takeClaim takes one request or message in.
func (in *intake) takeClaim(tx *transaction, known *known, c *submission) error {
	if c.inbound == nil {
		return in.acceptor.accept(tx, known, c)
	}
	known.stale = true
	return in.receiver.receive(tx, c)
}

// judgeAll judges submissions, on all processors when there are many. Those of other
// dialects may ask the ledger, so what came before them is written down.
func (in *intake) judgeAll(submissions []*submission) {
	inParts(submissions, runtime.GOMAXPROCS(0), func(_ int, part []*submission) {
		for _, c := range part {
			c.now = time.Now()
			if c.inbound != nil {
				in.receiver.judgeMessage(c)
			} else {
				c.judged = in.acceptor.doubt(c.task, in.reader.judge(c.task, c.odd, c.now))
			}
			c.verdict = c.judged
			if !c.verdict.Admit && c.task.ID != "" {
				c.refuse()
			}
		}
	})
}

// logTaken logs what became of a submission, once that is durable.
func (in *intake) logTaken(c *submission) {
	switch c.fate {
	case unnamed:
		// The findings quote the line, which may hold anything: they lie with it in rejected/.
		in.opts.Log.Warn().Str("file", c.line.File).Int64("offset", c.line.Offset).
			Str("reason", string(c.verdict.Findings.Kind())).Msg("line rejected")
	case duplicate:
		in.log(c.row).Debug().Str("task_id", string(c.task.ID)).Msg("duplicate ignored")
	case conflict:
		in.log(c.row).Warn().Str("task_id", string(c.task.ID)).Msg("other content for an executed id refused")
	case received:
		in.log(c.row).Debug().Str("act", string(c.inbound.message.Act)).Msg("message received")
	case accepted:
		if !slices.Contains(c.judged.Hold, task.Recovered) { // or that was said of all of them
			in.acceptor.warnUnknown(c.row, c.unknown)
		}
		for _, member := range c.members {
			in.logTaken(member)
		}
	}
}

// fileGone is the event of a task file that is not there any more, and of which lines may
// not have been read.
func fileGone(c mailbox.Cursor) task.Event {
	return event(task.Task{}, task.KindFileGone, map[string]any{"file": c.Path, "offset": c.Offset})
}
