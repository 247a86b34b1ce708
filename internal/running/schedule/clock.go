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

	mu   sync.Mutex      // guards next and heap
	next map[int64]timer // the one timer of a task
	heap timerHeap       // the timers of next, and stale later ones
}

func newClockTimers(now func() time.Time) *clockTimers {
	return &clockTimers{now: now, next: map[int64]timer{}}
}

// bootClock returns the time since boot, including sleep.
func bootClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now() // can't happen: every supported kernel has this clock
	}
	return time.Unix(now.Unix())
}

// add adds a timer, and reports whether it is the task's earliest, or the first one of Now.
func (c *clockTimers) add(t timer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, set := c.next[t.seq]; set && !t.at.Before(before.at) && (before.now || !t.now) {
		return false
	}
	c.next[t.seq] = t
	heap.Push(&c.heap, t)
	return true
}

// remove removes the timer of a task.
func (c *clockTimers) remove(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.next, seq)
}

// left returns the time until the timer of a task; 0 or less if it is over, or there is none.
func (c *clockTimers) left(seq int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, set := c.next[seq]
	if !set {
		return 0
	}
	return t.at.Sub(c.now())
}

// due removes and returns the timers whose time has come, and returns the wait until the
// next one; a negative wait means that there is none.
func (c *clockTimers) due() (over []timer, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for len(c.heap) > 0 && !c.heap[0].at.After(now) {
		t := heap.Pop(&c.heap).(timer)
		if c.next[t.seq] == t {
			delete(c.next, t.seq)
			over = append(over, t)
		}
	}
	if len(c.heap) == 0 {
		return over, -1
	}
	return over, min(c.heap[0].at.Sub(now), recheck)
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
