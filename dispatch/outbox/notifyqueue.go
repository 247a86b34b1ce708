package outbox

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A NotifyQueue has the tasks whose requesters may need a notification.
type NotifyQueue struct {
	added chan struct{} // signalled when a task is added

	mu    sync.Mutex // guards the fields below
	empty *sync.Cond // signalled when tasks are done
	tasks map[int64]bool
	taken int // tasks in progress
}

func newNotifyQueue() *NotifyQueue {
	q := &NotifyQueue{tasks: map[int64]bool{}, added: make(chan struct{}, 1)}
	q.empty = sync.NewCond(&q.mu)
	return q
}

// add adds a task, and reports false when it was queued already.
func (q *NotifyQueue) add(seq int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	added := !q.tasks[seq]
	q.tasks[seq] = true
	select {
	case q.added <- struct{}{}:
	default: // a signal is pending already
	}
	return added
}

// take takes out the oldest tasks, at most so many. They are in progress until done.
func (q *NotifyQueue) take(limit int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := slices.Sorted(maps.Keys(q.tasks))
	oldest = oldest[:min(limit, len(oldest))]
	for _, seq := range oldest {
		delete(q.tasks, seq)
	}
	q.taken += len(oldest)
	if len(q.tasks) > 0 {
		select {
		case q.added <- struct{}{}:
		default:
		}
	}
	return oldest
}

// done ends the progress of n tasks that were handled or added again.
func (q *NotifyQueue) done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= n
	q.empty.Broadcast()
}

// Await blocks until the queue is empty, or ctx ends.
func (q *NotifyQueue) Await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { q.done(0) })()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks)+q.taken > 0 && ctx.Err() == nil {
		q.empty.Wait()
	}
	return context.Cause(ctx)
}
