package schedule

import (
	"context"
	"sync"
)

// A DutyQueue has tasks for which something is to be done after a transaction, in the order in which they
// were added. A task may be in it more than once. Each is busy until Done.
type DutyQueue struct {
	Added chan struct{} // signalled when there are tasks
	queue *Queue        // whose busy time they are

	mu    sync.Mutex // guards the fields below
	empty *sync.Cond // signalled when tasks are done
	tasks []int64
	taken int // tasks that are taken and not done
}

// NewDutyQueue returns an empty DutyQueue, whose tasks a Queue counts as busy.
func NewDutyQueue(busy *Queue) *DutyQueue {
	q := &DutyQueue{Added: make(chan struct{}, 1), queue: busy}
	q.empty = sync.NewCond(&q.mu)
	return q
}

// Add appends a task. It never blocks.
func (q *DutyQueue) Add(seq int64) {
	q.queue.AddBusy()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, seq)
	q.signal()
}

// signal tells a taker that there are tasks. The caller holds mu.
func (q *DutyQueue) signal() {
	if len(q.tasks) == 0 {
		return
	}
	select {
	case q.Added <- struct{}{}:
	default: // a signal is pending already
	}
}

// Take removes the first tasks, at most so many different ones.
func (q *DutyQueue) Take(most int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, different := 0, map[int64]bool{}
	for n < len(q.tasks) && (len(different) < most || different[q.tasks[n]]) {
		different[q.tasks[n]] = true
		n++
	}
	return q.remove(n)
}

// remove removes the first n tasks. The caller holds mu.
func (q *DutyQueue) remove(n int) []int64 {
	first := q.tasks[:n]
	q.tasks = q.tasks[n:]
	q.taken += n
	q.signal()
	return first
}

// Next blocks for the first task, and removes it. It returns false when ctx has ended.
func (q *DutyQueue) Next(ctx context.Context) (int64, bool) {
	for ctx.Err() == nil {
		if seq, ok := q.first(); ok {
			return seq, true
		}
		select {
		case <-ctx.Done():
		case <-q.Added:
		}
	}
	return 0, false
}

func (q *DutyQueue) first() (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tasks) == 0 {
		return 0, false
	}
	return q.remove(1)[0], true
}

// Done ends the busy time of n tasks that were taken.
func (q *DutyQueue) Done(n int) {
	for range n {
		q.queue.Done()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= n
	q.empty.Broadcast()
}

// Await blocks until all tasks are done, or ctx ends.
func (q *DutyQueue) Await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { q.Done(0) })()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks)+q.taken > 0 && ctx.Err() == nil {
		q.empty.Wait()
	}
	return context.Cause(ctx)
}
