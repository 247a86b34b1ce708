package executor

import (
	"context"
	"sync"

	"mailboxd/dispatch/exchange"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// FreshTasks holds tasks that were just queued, as they were read, so that a task that starts
// soon isn't read and decoded again: 0.15 ms each. An entry is a hint, since the row may have
// moved; the start of a run compares and swaps.
type FreshTasks struct {
	mu    sync.Mutex // guards the fields below
	tasks map[int64]freshTask
	bytes int  // of the kept lines
	full  bool // until half of the lines are taken
}

type freshTask struct {
	row      task.Task
	task     envelope.Task
	findings envelope.Findings
}

// maxFreshBytes limits the kept lines. Tasks queued beyond it are read from the ledger when
// they start. The kept lines are consecutive, because each keeps in memory all that was read
// with it, which is up to a thousand times as much.
const maxFreshBytes = 4 << 20

// NewFreshTasks returns FreshTasks without tasks.
func NewFreshTasks() *FreshTasks {
	return &FreshTasks{tasks: map[int64]freshTask{}}
}

// Keep adds a submission that was queued, if there is room.
func (f *FreshTasks) Keep(c *exchange.Submission) {
	if c.Row.State != task.Queued || c.Row.Replaces || c.Row.Dialect != envelope.AINL || c.Row.Parent != 0 ||
		len(envelope.ArtifactsOf(c.Task.Refs)) > 0 {
		return // other tasks inherit from a parent or from artifacts, or need another decoding
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full = f.full || f.bytes+len(c.Task.Raw) > maxFreshBytes; f.full {
		return
	}
	f.bytes += len(c.Task.Raw)
	f.tasks[c.Row.Seq] = freshTask{c.Row, c.Task, c.DecodeFindings}
}

// take removes a task and returns it, if it is there.
func (f *FreshTasks) take(seq int64) (freshTask, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tasks[seq]
	if ok {
		delete(f.tasks, seq)
		f.bytes -= len(t.task.Raw)
		f.full = f.full && f.bytes > maxFreshBytes/2
	}
	return t, ok
}

// loadQueued is [store.Reader.Load] for a queued task.
func (p *Preparer) loadQueued(ctx context.Context, it schedule.Item) (task.Task, envelope.Task, envelope.Findings, error) {
	if t, ok := p.Fresh.take(it.Seq); ok {
		return t.row, t.task, t.findings, nil
	}
	return p.Reader.Load(ctx, it.Seq)
}
