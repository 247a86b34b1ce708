package schedule

import (
	"context"
	"slices"
	"time"
)

// Between two runs in a slot lie the checks of the next task and the commit of its
// intent. While runs are so short that this counts, some tasks are prepared
// meanwhile. One that gets no slot soon goes back, and its intent is void.

// PrefetchPerSlot is how many tasks are prepared ahead of each slot. Tasks of true
// in a second, on two busy cores: 233 with 0, 349 with 1.
const PrefetchPerSlot = 3

// quickRun is the time below which a run is short: then a prepared task gets its
// slot within patience.
const quickRun = 50 * time.Millisecond

// patience is how long a prepared task waits for its slot.
const patience = 250 * time.Millisecond

// A prefetchSlot is the claim of an item to the next slot that is free for it.
type prefetchSlot struct {
	item    Item
	valid   bool          // the item has its slot
	decided chan struct{} // closed when that is decided
}

// prefetch is the items that were taken before there was a slot. The queue's mu guards it.
type prefetch struct {
	waiting []*prefetchSlot          // those that are not decided, the oldest first
	pace    map[string]time.Duration // how long runs of an agent take, the later ones counting more
}

func newPrefetch() prefetch {
	return prefetch{pace: map[string]time.Duration{}}
}

// count counts the items of an agent, or of AllAgents, that wait.
func (p *prefetch) count(agent string) int {
	n := 0
	for _, s := range p.waiting {
		if s.item.Agent == agent || agent == AllAgents {
			n++
		}
	}
	return n
}

// mayPrefetch reports whether a task of the agent may be prepared before there is a
// slot for it. The caller holds mu.
func (q *Queue) mayPrefetch(agent string) bool {
	pace, known := q.prefetch.pace[agent]
	return known && pace < quickRun && len(q.prefetch.waiting) < PrefetchPerSlot*q.slots &&
		q.prefetch.count(agent) < PrefetchPerSlot*q.limit(agent)
}

// addPrefetch has an item wait for its slot. The caller holds mu.
func (q *Queue) addPrefetch(it Item) *prefetchSlot {
	s := &prefetchSlot{item: it, decided: make(chan struct{})}
	q.prefetch.waiting = append(q.prefetch.waiting, s)
	return s
}

// leavePrefetch has an item wait no longer, and reports whether it has its slot.
// The caller holds mu.
func (q *Queue) leavePrefetch(it Item) bool {
	if it.slot == nil {
		return true
	}
	q.cancel(it.slot)
	return it.slot.valid
}

// promote gives slots that are free to the items that wait for them, the oldest
// first. The caller holds mu.
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

// cancel ends the wait of an item that has not got its slot. The caller holds mu.
func (q *Queue) cancel(s *prefetchSlot) {
	if at := slices.Index(q.prefetch.waiting, s); at >= 0 {
		q.prefetch.waiting = slices.Delete(q.prefetch.waiting, at, at+1)
		close(s.decided)
	}
}

// CancelPrefetch has the items of an agent, or of AllAgents, wait for slots no longer.
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

// WaitForSlot blocks until an item that was taken has its slot. It reports false
// when the item gets none now, or take has ended. It also returns when run ends, with
// true unless take has ended too: the run is to report its own end.
func (q *Queue) WaitForSlot(take, run context.Context, it Item) bool {
	s := it.slot
	if s == nil {
		return take.Err() == nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.decided:
	case <-run.Done():
		return take.Err() == nil
	case <-take.Done():
	case <-timer.C:
		q.RecordRun(it.Agent, time.Minute) // the agent is not quick: prepare no more of its tasks
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.valid && take.Err() == nil
}

// RecordRun notes how long a run took, of an agent whose next task may be prepared
// ahead of its slot.
func (q *Queue) RecordRun(agent string, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	took = min(took, time.Minute)
	if before, known := q.prefetch.pace[agent]; known {
		took = (3*before + took) / 4
	}
	q.prefetch.pace[agent] = took
}
