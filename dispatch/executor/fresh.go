package executor

import (
	"context"
	"sync"

	"mailboxd/dispatch/exchange"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// Fresh has tasks that were just queued, as they were read, so that one that starts
// soon isn't read and decoded again: 0.15 ms each. What it has is a
// hint, as the row may have been moved since; the start of a run compares and swaps.
type Fresh struct {
	reading sync.Mutex // one reads ahead at a time

	mu    sync.Mutex // guards what follows
	tasks map[int64]freshTask
	bytes int  // of their lines
	full  bool // until half of them were taken
}

type freshTask struct {
	row      task.Task
	task     envelope.Task
	findings envelope.Findings
}

// mostFresh bounds the lines that are kept. What is queued beyond is read from
// the ledger when it is next. Kept are lines that follow each other: each keeps
// all that was read with it in memory, which is up to a thousand times as much.
const mostFresh = 4 << 20

// NewFresh returns a Fresh without tasks.
func NewFresh() *Fresh {
	return &Fresh{tasks: map[int64]freshTask{}}
}

// Keep remembers a submission that was queued, if there is room.
func (f *Fresh) Keep(c *exchange.Submission) {
	if c.Row.State != task.Queued || c.Row.Replaces || c.Row.Dialect != envelope.AINL || c.Row.Parent != 0 {
		return // or it is not as it was read: it inherits what is above it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full = f.full || f.bytes+len(c.Task.Raw) > mostFresh; f.full {
		return
	}
	f.bytes += len(c.Task.Raw)
	f.tasks[c.Row.Seq] = freshTask{c.Row, c.Task, c.DecodeFindings}
}

// take forgets a task and returns it, if it is there.
func (f *Fresh) take(seq int64) (freshTask, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tasks[seq]
	if ok {
		delete(f.tasks, seq)
		f.bytes -= len(t.task.Raw)
		f.full = f.full && f.bytes > mostFresh/2
	}
	return t, ok
}

// loadQueued is [store.Reader.Load] for the next task. The tasks behind it are
// read with it.
func (p *Preparer) loadQueued(ctx context.Context, it schedule.Item) (task.Task, envelope.Task, envelope.Findings, error) {
	if t, ok := p.Fresh.take(it.Seq); ok {
		return t.row, t.task, t.findings, nil
	}
	r, err := p.readAhead(ctx, it)
	if err != nil {
		return task.Task{}, envelope.Task{}, nil, err
	}
	t, findings, err := p.Reader.DecodeRow(ctx, r.Task, r.Raw)
	return r.Task, t, findings, err
}

// readAtOnce is how many requests are read together.
const readAtOnce = 16

// readAhead returns the request of an item as it is now.
func (p *Preparer) readAhead(ctx context.Context, it schedule.Item) (ledger.Request, error) {
	if r, ok := p.Ledger.Remembered(it.Seq); ok {
		return r, nil
	}
	p.Fresh.reading.Lock()
	defer p.Fresh.reading.Unlock()
	if r, ok := p.Ledger.Remembered(it.Seq); ok {
		return r, nil // who had the lock before has read it
	}
	return p.Ledger.ReadAhead(ctx, it.Seq, p.Queue.Peek(it.Agent, readAtOnce-1))
}
