package dispatch

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// recheck bounds how long an alarm trusts its timer: timers stand still while
// a machine sleeps, and the wall clock can be set.
const recheck = time.Minute

// An alarm asks to look at a task again at a time.
type alarm struct {
	at  time.Time
	seq int64
}

// alarms keeps the alarms of all tasks. An alarm is a hint: whoever is called
// looks the task's state up and does what it finds due.
type alarms struct {
	changed chan struct{}

	mu     sync.Mutex          // guards next and sooner
	next   map[int64]time.Time // the one alarm of each task that has one
	sooner alarmHeap           // holds it, and perhaps later ones that count no more
}

func newAlarms() *alarms {
	return &alarms{changed: make(chan struct{}, 1), next: map[int64]time.Time{}}
}

// set asks for a task to be looked at again; a zero time asks for nothing. A
// task has one alarm, its earliest: whoever looks at it sets the next one.
func (a *alarms) set(seq int64, at time.Time) {
	if at.IsZero() || !a.add(alarm{at: at.Round(0), seq: seq}) { // by the wall clock, not the monotonic one
		return
	}
	select {
	case a.changed <- struct{}{}:
	default: // it will look at the heap anyway
	}
}

// add reports whether the alarm is the task's earliest.
func (a *alarms) add(one alarm) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, set := a.next[one.seq]; set && !one.at.Before(at) {
		return false
	}
	a.next[one.seq] = one.at
	heap.Push(&a.sooner, one)
	return true
}

// due removes what is due and says how long the rest can wait; a negative
// wait means that nothing is left.
func (a *alarms) due(now time.Time) (seqs []int64, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now = now.Round(0)
	for len(a.sooner) > 0 && !a.sooner[0].at.After(now) {
		one := heap.Pop(&a.sooner).(alarm)
		if at, set := a.next[one.seq]; set && at.Equal(one.at) {
			delete(a.next, one.seq)
			seqs = append(seqs, one.seq)
		}
	}
	if len(a.sooner) == 0 {
		return seqs, -1
	}
	return seqs, min(a.sooner[0].at.Sub(now), recheck)
}

// serve calls ring for each task whose time has come, until ctx ends.
func (a *alarms) serve(ctx context.Context, ring func(seq int64)) {
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		seqs, wait := a.due(time.Now())
		for _, seq := range seqs {
			ring(seq)
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		case <-timer.C:
		}
	}
}

// alarmHeap orders alarms by their time.
type alarmHeap []alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *alarmHeap) Push(x any)        { *h = append(*h, x.(alarm)) }
func (h *alarmHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
