package dispatch

import (
	"context"
	"slices"
	"time"
)

// Between two runs in a slot lie the checks of the next task and the commit of
// its intent. While runs are so short that this counts, some tasks get ready
// meanwhile. One whose turn does not come soon goes back, its intent void.

// perSlot is how many tasks get ready ahead of each slot. Tasks of true in a
// second, on two busy cores: 233 with 0, 349 with 1.
const perSlot = 3

// quickRun is the time below which a run is short: then the turn of whoever is
// ready comes within patience.
const quickRun = 50 * time.Millisecond

// patience is how long a task that is ready waits for its slot.
const patience = 250 * time.Millisecond

// A ticket is the claim of an item to the next slot that is free for it.
type ticket struct {
	item  item
	valid bool          // it has its slot
	turn  chan struct{} // closed when that is decided
}

// early is who was taken before there was a slot. The queue's mu guards it.
type early struct {
	waiting []*ticket                // those that are not decided, the oldest first
	pace    map[string]time.Duration // how long runs of an agent take, the later ones counting more
}

func newEarly() early {
	return early{pace: map[string]time.Duration{}}
}

// of counts those of an agent, or of Everyone, that wait.
func (e *early) of(agent string) int {
	n := 0
	for _, t := range e.waiting {
		if t.item.agent == agent || agent == Everyone {
			n++
		}
	}
	return n
}

// mayBeEarly reports whether a task of the agent may get ready before there is a
// slot for it. The caller holds mu.
func (q *queue) mayBeEarly(agent string) bool {
	pace, known := q.early.pace[agent]
	return known && pace < quickRun && len(q.early.waiting) < perSlot*q.slots && q.early.of(agent) < perSlot*q.limit(agent)
}

// admitEarly returns the ticket of an item. The caller holds mu.
func (q *queue) admitEarly(it item) *ticket {
	t := &ticket{item: it, turn: make(chan struct{})}
	q.early.waiting = append(q.early.waiting, t)
	return t
}

// leaveEarly takes the ticket of an item back, if it has one, and reports whether it
// has its slot. The caller holds mu.
func (q *queue) leaveEarly(it item) bool {
	if it.ticket == nil {
		return true
	}
	q.cancel(it.ticket)
	return it.ticket.valid
}

// promote gives slots that are free to those who have tickets for them, the
// oldest first. The caller holds mu.
func (q *queue) promote() {
	q.early.waiting = slices.DeleteFunc(q.early.waiting, func(t *ticket) bool {
		if !q.hasSlot(t.item.agent) {
			return false
		}
		q.occupy(t.item)
		t.valid = true
		close(t.turn)
		return true
	})
}

// cancel takes a ticket back that has not got its slot. The caller holds mu.
func (q *queue) cancel(t *ticket) {
	if at := slices.Index(q.early.waiting, t); at >= 0 {
		q.early.waiting = slices.Delete(q.early.waiting, at, at+1)
		close(t.turn)
	}
}

// turnBack cancels the tickets of an agent, or of Everyone.
func (q *queue) turnBack(agent string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range slices.Clone(q.early.waiting) {
		if t.item.agent == agent || agent == Everyone {
			q.cancel(t)
		}
	}
	q.work.Broadcast()
	q.changed.Broadcast()
}

// start blocks until an item that was taken has its slot, or run ends: whoever
// ended it wants to see that. It reports false when there is none for the item
// now, or take has ended.
func (q *queue) start(take, run context.Context, it item) bool {
	t := it.ticket
	if t == nil {
		return take.Err() == nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.turn:
	case <-run.Done():
		return take.Err() == nil
	case <-take.Done():
	case <-timer.C:
		q.ran(it.agent, time.Minute) // nobody waits for it in vain again
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.valid && take.Err() == nil
}

// ran takes note of how long a run took whose next one may get ready early.
func (q *queue) ran(agent string, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	took = min(took, time.Minute)
	if before, known := q.early.pace[agent]; known {
		took = (3*before + took) / 4
	}
	q.early.pace[agent] = took
}
