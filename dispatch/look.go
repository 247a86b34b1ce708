package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// Look takes in what is new in the mailbox: task lines, and results that
// somebody else placed. Events are hints, so it may be called at any time and
// from several goroutines. What it cannot do is logged once and tried again
// by the next look. It waits until Serve has recovered what was left over. It
// reports whether there may be more, because the queue is full; Serve looks
// again by itself when it has room. The error is logged already; it is for who
// looks but once.
func (d *Dispatcher) Look(ctx context.Context) (paused bool, err error) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return false, nil
	}
	d.looking.Lock()
	defer d.looking.Unlock()
	before := d.bygones.count()
	paused, err = d.intake.look(ctx)
	d.adoptHeld(ctx)
	if err == nil && !paused {
		d.bygones.forget(before)
	}
	if ctx.Err() != nil {
		return paused, err
	}
	d.faults.reportIntake(err)
	if err != nil {
		select {
		case d.failed <- struct{}{}:
		default: // it will be looked at anyway
		}
	}
	return paused, err
}

// Unread reports whether a run has ended since the last look, so that what its
// agent asked for may lie there. It is for who looks but once.
func (d *Dispatcher) Unread() bool { return d.bygones.any() }

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

// lookWhenThereIsRoom goes on with intake that paused at a full queue, or that
// something kept from going on.
func (d *Dispatcher) lookWhenThereIsRoom(ctx context.Context) {
	var pause <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.failed:
			pause = time.After(retryPause)
			continue
		case <-pause:
		case <-d.queue.Room():
		}
		d.Look(ctx)
	}
}
