package dispatch

import (
	"context"
	"sync"
)

// A letterBox has the admitted tasks that are to be delivered to the inboxes of
// their agents, the first one first.
type letterBox struct {
	mu    sync.Mutex // guards tasks
	tasks []int64
	added chan struct{} // signalled when there is one
}

func newLetterBox() *letterBox { return &letterBox{added: make(chan struct{}, 1)} }

// add puts a task behind the others.
func (b *letterBox) add(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = append(b.tasks, seq)
	select {
	case b.added <- struct{}{}:
	default: // it will be looked at anyway
	}
}

// next blocks for a task, and takes it out. It returns false when ctx has ended.
func (b *letterBox) next(ctx context.Context) (int64, bool) {
	for ctx.Err() == nil {
		if seq, ok := b.first(); ok {
			return seq, true
		}
		select {
		case <-ctx.Done():
		case <-b.added:
		}
	}
	return 0, false
}

func (b *letterBox) first() (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) == 0 {
		return 0, false
	}
	seq := b.tasks[0]
	b.tasks = b.tasks[1:]
	return seq, true
}
