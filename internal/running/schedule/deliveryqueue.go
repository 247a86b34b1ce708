package schedule

import (
	"context"
	"sync"
)

// A DeliveryQueue is a FIFO queue of tasks with deliveries.
type DeliveryQueue struct {
	mu    sync.Mutex // guards tasks
	tasks []int64
	added chan struct{} // signalled by Add
}

// NewDeliveryQueue returns an empty queue.
func NewDeliveryQueue() *DeliveryQueue { return &DeliveryQueue{added: make(chan struct{}, 1)} }

// Add appends a task.
func (q *DeliveryQueue) Add(seq int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, seq)
	select {
	case q.added <- struct{}{}:
	default: // a signal is pending already
	}
}

// Next blocks for the first task, and removes it. It returns false when ctx has ended.
func (q *DeliveryQueue) Next(ctx context.Context) (int64, bool) {
	for ctx.Err() == nil {
		if seq, ok := q.first(); ok {
			return seq, true
		}
		select {
		case <-ctx.Done():
		case <-q.added:
		}
	}
	return 0, false
}

func (q *DeliveryQueue) first() (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tasks) == 0 {
		return 0, false
	}
	seq := q.tasks[0]
	q.tasks = q.tasks[1:]
	return seq, true
}
