package schedule

import (
	"context"
	"slices"
	"time"
)

// Between two runs in a slot come the checks of the next task and the commit of its intent.
// If runs are so short that this matters, some tasks are prepared before a slot is free. A
// prepared task without a slot is put back soon, and its intent is void.

// PrefetchPerSlot is the number of tasks prepared for each slot. Runs of `true` a second,
// on two busy cores: 233 with 0, 349 with 1.
const PrefetchPerSlot = 3

// quickRun is the limit for short runs: a prepared task then gets its slot within prefetchWait.
const quickRun = 50 * time.Millisecond

// prefetchWait is the longest wait of a prepared task for its slot.
const prefetchWait = 250 * time.Millisecond

// A prefetchSlot reserves the next free slot for an item.
type prefetchSlot struct {
	item    Item
	valid   bool          // the item has its slot
	decided chan struct{} // closed when valid is final
}

// prefetch holds the items taken before a slot was free. The queue's mu guards it.
type prefetch struct {
	waiting []*prefetchSlot          // undecided ones, the highest priority first, then the oldest
	pace    map[string]time.Duration // moving average of run times, by agent
}

func newPrefetch() prefetch {
	return prefetch{pace: map[string]time.Duration{}}
}

// count counts the waiting items of an agent, or of AllAgents.
func (p *prefetch) count(agent string) int {
	n := 0
	for _, s := range p.waiting {
		if s.item.Agent == agent || agent == AllAgents {
			n++
		}
	}
	return n
}

// mayPrefetch reports whether a task of the agent may be prepared before its slot is free.
// The caller holds mu.
func (q *Queue) mayPrefetch(agent string) bool {
	pace, known := q.prefetch.pace[agent]
	return known && pace < quickRun && len(q.prefetch.waiting) < PrefetchPerSlot*q.slots &&
		q.prefetch.count(agent) < PrefetchPerSlot*q.limit(agent)
}

// addPrefetch lets an item wait for its slot. The caller holds mu.
func (q *Queue) addPrefetch(it Item) *prefetchSlot {
	s := &prefetchSlot{item: it, decided: make(chan struct{})}
	at := len(q.prefetch.waiting)
	for at > 0 && q.prefetch.waiting[at-1].item.Priority < it.Priority {
		at--
	}
	q.prefetch.waiting = slices.Insert(q.prefetch.waiting, at, s)
	return s
}

// leavePrefetch ends the wait of an item, and reports whether it has its slot. The caller
// holds mu.
func (q *Queue) leavePrefetch(it Item) bool {
	if it.slot == nil {
		return true
	}
	q.cancel(it.slot)
	return it.slot.valid
}

// promote gives free slots to the items that wait for them, in their order. The caller
// holds mu.
func (q *Queue) promote() {
	q.prefetch.waiting = slices.DeleteFunc(q.prefetch.waiting, func(s *prefetchSlot) bool {
		if !q.hasSlot(s.item.Agent) {
			return false
		}
		q.occupy(s.item)
		s.valid = true
		close(s.decided)
		return true
	})
}

// cancel ends the wait of an item without a slot. The caller holds mu.
func (q *Queue) cancel(s *prefetchSlot) {
	if at := slices.Index(q.prefetch.waiting, s); at >= 0 {
		q.prefetch.waiting = slices.Delete(q.prefetch.waiting, at, at+1)
		close(s.decided)
	}
}

// CancelPrefetch ends the wait of the items of an agent, or of AllAgents.
func (q *Queue) CancelPrefetch(agent string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range slices.Clone(q.prefetch.waiting) {
		if s.item.Agent == agent || agent == AllAgents {
			q.cancel(s)
		}
	}
	q.work.Broadcast()
	q.changed.Broadcast()
}

// WaitForSlot blocks until a taken item has its slot. It returns false if the item gets no
// slot soon, or take has ended. If run ends first, it returns true unless take has ended
// too: the run reports its own end.
func (q *Queue) WaitForSlot(take, run context.Context, it Item) bool {
	s := it.slot
	if s == nil {
		return take.Err() == nil
	}
	timer := time.NewTimer(prefetchWait)
	defer timer.Stop()
	select {
	case <-s.decided:
	case <-run.Done():
		return take.Err() == nil
	case <-take.Done():
	case <-timer.C:
		q.RecordRun(it.Agent, time.Minute) // the agent isn't quick: stop preparing its tasks
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.valid && take.Err() == nil
}

// RecordRun records the time of a run, to decide whether to prepare the agent's tasks.
func (q *Queue) RecordRun(agent string, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	took = min(took, time.Minute)
	if before, known := q.prefetch.pace[agent]; known {
		took = (3*before + took) / 4
	}
	q.prefetch.pace[agent] = took
}
