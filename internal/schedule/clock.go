package schedule

import (
	"container/heap"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A clockTimers keeps the earliest timer of each task, by one clock.
type clockTimers struct {
	now func() time.Time

	mu   sync.Mutex          // guards next and heap
	next map[int64]time.Time // the one timer of each task that has one
	heap timerHeap           // holds it, and perhaps later ones that count no more
}

func newClockTimers(now func() time.Time) *clockTimers {
	return &clockTimers{now: now, next: map[int64]time.Time{}}
}

// bootClock is the time since the machine was started, sleep included.
func bootClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now() // every supported kernel has that clock
	}
	return time.Unix(now.Unix())
}

// add reports whether the timer is the task's earliest.
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

// due removes what is due and says how long the rest can wait; a negative
// wait means that nothing is left.
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
