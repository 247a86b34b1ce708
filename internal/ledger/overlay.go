package ledger

import (
	"context"
	"slices"

	"mailboxd/internal/task"
)

// Task returns the revision with this Seq; ErrUnknown when there is none.
func (l *Ledger) Task(ctx context.Context, seq int64) (task.Task, error) {
	if t, ok := l.overlay(seq); ok {
		return t.Task, nil
	}
	return l.idleReader.Task(ctx, seq)
}

// Raw returns the line of the revision with this Seq, as it came; ErrUnknown
// when there is none.
func (l *Ledger) Raw(ctx context.Context, seq int64) ([]byte, error) {
	if t, ok := l.overlay(seq); ok && t.raw != nil {
		return t.raw, nil
	}
	return l.idleReader.Raw(ctx, seq)
}

// Result returns the bytes of the result of the revision with this Seq;
// ErrUnknown when there is none yet.
func (l *Ledger) Result(ctx context.Context, seq int64) ([]byte, error) {
	if t, ok := l.overlay(seq); ok && t.result != nil {
		return t.result, nil
	}
	return l.idleReader.Result(ctx, seq)
}

// overlay returns what the tables do not have of a task.
func (l *Ledger) overlay(seq int64) (all taskChange, found bool) {
	for _, c := range slices.Backward(l.layers()) {
		l.mu.Lock()
		t := c.tasks[seq]
		l.mu.Unlock()
		if t == nil {
			continue
		}
		found = true
		all.Task = t.Task
		if t.raw != nil {
			all.raw = t.raw
		}
		if t.result != nil {
			all.result = t.result
		}
	}
	return all, found
}
