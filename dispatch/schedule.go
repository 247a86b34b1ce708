package dispatch

import (
	"container/heap"
	"sync"
	"time"
)

// A schedule keeps the earliest alarm of each task, by one clock.
type schedule struct {
	now func() time.Time

	mu     sync.Mutex          // guards next and sooner
	next   map[int64]time.Time // the one alarm of each task that has one
	sooner alarmHeap           // holds it, and perhaps later ones that count no more
}

func newSchedule(now func() time.Time) *schedule {
	return &schedule{now: now, next: map[int64]time.Time{}}
}

// add reports whether the alarm is the task's earliest.
func (s *schedule) add(one alarm) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, set := s.next[one.seq]; set && !one.at.Before(at) {
		return false
	}
	s.next[one.seq] = one.at
	heap.Push(&s.sooner, one)
	return true
}

// due removes what is due and says how long the rest can wait; a negative
// wait means that nothing is left.
func (s *schedule) due() (seqs []int64, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for len(s.sooner) > 0 && !s.sooner[0].at.After(now) {
		one := heap.Pop(&s.sooner).(alarm)
		if at, set := s.next[one.seq]; set && at.Equal(one.at) {
			delete(s.next, one.seq)
			seqs = append(seqs, one.seq)
		}
	}
	if len(s.sooner) == 0 {
		return seqs, -1
	}
	return seqs, min(s.sooner[0].at.Sub(now), recheck)
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
