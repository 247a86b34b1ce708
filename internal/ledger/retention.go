package ledger

import (
	"context"
	"time"

	"mailboxd/internal/index"
	"mailboxd/internal/task"
)

// DropBodies forgets the bodies of up to limit tasks after afterSeq that were over before a
// time, and returns where to go on; 0 when there are no more.
func (tx *Tx) DropBodies(before time.Time, afterSeq int64, limit int) (next int64, dropped int, err error) {
	old, err := tx.ledger.index.AgedBodies(background, before, afterSeq, limit)
	for _, t := range old {
		e, err := tx.edit(t.Seq)
		if err != nil {
			return 0, 0, err
		}
		tx.row(e, index.BodiesGone(&e.Task.Task))
		next = t.Seq
	}
	if len(old) < limit {
		next = 0
	}
	return next, len(old), err
}

// DropEvents forgets events.
func (tx *Tx) DropEvents(before time.Time, afterSeq int64, limit int) (next int64, dropped int, err error) {
	old, err := tx.ledger.index.AgedEvents(background, before, afterSeq, limit)
	for _, seq := range old {
		tx.row(nil, index.EventGone(seq))
		next = seq
	}
	if len(old) < limit {
		next = 0
	}
	return next, len(old), err
}

// DropMessages forgets messages.
func (tx *Tx) DropMessages(before time.Time, afterSeq int64, limit int) (next int64, dropped int, err error) {
	old, err := tx.ledger.index.AgedMessages(background, before, afterSeq, limit)
	for _, seq := range old {
		tx.row(nil, index.MessageGone(seq))
		next = seq
	}
	if len(old) < limit {
		next = 0
	}
	return next, len(old), err
}

// A Request is a task with its line.
type Request struct {
	task.Task
	Raw []byte
}

// Remembered returns a request.
func (l *Ledger) Remembered(seq int64) (Request, bool) { return Request{}, false }

// ReadAhead returns a request.
func (l *Ledger) ReadAhead(ctx context.Context, seq int64, _ []int64) (r Request, err error) {
	if r.Task, err = l.Task(ctx, seq); err == nil {
		r.Raw, err = l.Raw(ctx, seq)
	}
	return r, err
}

// QueuedTask is none.
type QueuedTask struct {
	Seq              int64
	Agent, Requester string
}

// QueuedTasks returns none.
func (l *Ledger) QueuedTasks(context.Context, int64, int) ([]QueuedTask, error) { return nil, nil }
