package schedule

import (
	"container/heap"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A clockTimers keeps the earliest timer of each task on one clock.
type clockTimers struct {
	now func() time.Time

	mu   sync.Mutex          // guards next and heap
	next map[int64]time.Time // the one timer of a task
	heap timerHeap           // the timers of next, and stale later ones
}

func newClockTimers(now func() time.Time) *clockTimers {
	return &clockTimers{now: now, next: map[int64]time.Time{}}
}

// bootClock returns the time since boot, including sleep.
func bootClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now() // can't happen: every supported kernel has this clock
	}
	return time.Unix(now.Unix())
}

// add adds a timer, and reports whether it is the task's earliest.
func (c *clockTimers) add(t timer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, set := c.next[t.seq]; set && !t.at.Before(at) {
		return false
	}
	c.next[t.seq] = t.at
	heap.Push(&c.heap, t)
	return true
}

// due removes and returns the tasks whose time has come, and returns the wait until the
// next timer; a negative wait means that there is none.
func (c *clockTimers) due() (seqs []int64, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for len(c.heap) > 0 && !c.heap[0].at.After(now) {
		t := heap.Pop(&c.heap).(timer)
		if at, set := c.next[t.seq]; set && at.Equal(t.at) {
			delete(c.next, t.seq)
			seqs = append(seqs, t.seq)
		}
	}
	if len(c.heap) == 0 {
		return seqs, -1
	}
	return seqs, min(c.heap[0].at.Sub(now), recheck)
}

// timerHeap orders timers by their time.
type timerHeap []timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
