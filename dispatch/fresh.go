package dispatch

import (
	"context"
	"sync"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// fresh has tasks that were just queued, as they were read, so that one whose
// turn comes soon is not read and decoded again: 0.15 ms each. What it has is a
// hint, as the row may have been moved since: who starts a run compares and swaps.
type fresh struct {
	mu    sync.Mutex // guards what follows
	tasks map[int64]freshTask
	bytes int // of their lines
}

type freshTask struct {
	row      ledger.Task
	task     envelope.Task
	findings envelope.Findings
}

// mostFresh bounds the lines that are kept. What is queued beyond is read from
// the ledger when its turn comes.
const mostFresh = 4 << 20

func newFresh() *fresh { return &fresh{tasks: map[int64]freshTask{}} }

// keep remembers a claim that was queued, if there is room.
func (f *fresh) keep(c *claim) {
	if c.row.State != ledger.Queued || c.row.Replaces || c.row.Dialect != envelope.AINL || c.row.Parent != 0 {
		return // or it is not as it was read: it inherits what is above it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes+len(c.task.Raw) > mostFresh {
		return
	}
	f.bytes += len(c.task.Raw)
	f.tasks[c.row.Seq] = freshTask{c.row, c.task, c.odd}
}

// take forgets a task and returns it, if it is there.
func (f *fresh) take(seq int64) (freshTask, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tasks[seq]
	if ok {
		delete(f.tasks, seq)
		f.bytes -= len(t.task.Raw)
	}
	return t, ok
}

// loadQueued is load for a task whose turn has come.
func (d *Dispatcher) loadQueued(ctx context.Context, seq int64) (ledger.Task, envelope.Task, envelope.Findings, error) {
	if t, ok := d.fresh.take(seq); ok {
		return t.row, t.task, t.findings, nil
	}
	return d.load(ctx, seq)
}
