package dispatch

import (
	"maps"
	"slices"
	"sync"
)

// untold has the tasks of which somebody may have to be told something.
type untold struct {
	mu    sync.Mutex // guards tasks
	tasks map[int64]bool
	added chan struct{} // signalled when there is one
}

func newUntold() *untold { return &untold{tasks: map[int64]bool{}, added: make(chan struct{}, 1)} }

// add reports whether the task was not there yet.
func (u *untold) add(seq int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	news := !u.tasks[seq]
	u.tasks[seq] = true
	select {
	case u.added <- struct{}{}:
	default: // it will be looked at anyway
	}
	return news
}

// some takes out the oldest tasks, at most so many.
func (u *untold) some(most int) []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	oldest := slices.Sorted(maps.Keys(u.tasks))
	oldest = oldest[:min(most, len(oldest))]
	for _, seq := range oldest {
		delete(u.tasks, seq)
	}
	if len(u.tasks) > 0 {
		select {
		case u.added <- struct{}{}:
		default:
		}
	}
	return oldest
}
