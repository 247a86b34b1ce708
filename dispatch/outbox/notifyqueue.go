package outbox

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A NotifyQueue has the tasks whose requesters may have to be notified.
type NotifyQueue struct {
	added chan struct{} // signalled when there is one

	mu    sync.Mutex // guards what follows
	empty *sync.Cond // nothing is left
	tasks map[int64]bool
	taken int // tasks that are in hand
}

func newNotifyQueue() *NotifyQueue {
	q := &NotifyQueue{tasks: map[int64]bool{}, added: make(chan struct{}, 1)}
	q.empty = sync.NewCond(&q.mu)
	return q
}

// add reports whether the task was not there yet.
func (q *NotifyQueue) add(seq int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	added := !q.tasks[seq]
	q.tasks[seq] = true
	select {
	case q.added <- struct{}{}:
	default: // it will be looked at anyway
	}
	return added
}

// take takes the oldest tasks out, at most so many, until they are done.
func (q *NotifyQueue) take(most int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := slices.Sorted(maps.Keys(q.tasks))
	oldest = oldest[:min(most, len(oldest))]
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

// done says that so many taken tasks are done, or were added again.
func (q *NotifyQueue) done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= n
	q.empty.Broadcast()
}

// Await blocks until nothing is left, or ctx ends.
func (q *NotifyQueue) Await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { q.done(0) })()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks)+q.taken > 0 && ctx.Err() == nil {
		q.empty.Wait()
	}
	return context.Cause(ctx)
}
