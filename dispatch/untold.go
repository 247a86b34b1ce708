package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// untold has the tasks of which somebody may have to be told something.
type untold struct {
	added chan struct{} // signalled when there is one

	mu    sync.Mutex // guards what follows
	quiet *sync.Cond // nothing is left
	tasks map[int64]bool
	taken int // tasks of which is being told
}

func newUntold() *untold {
	u := &untold{tasks: map[int64]bool{}, added: make(chan struct{}, 1)}
	u.quiet = sync.NewCond(&u.mu)
	return u
}

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

// some takes out the oldest tasks, at most so many, until they are told.
func (u *untold) some(most int) []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	oldest := slices.Sorted(maps.Keys(u.tasks))
	oldest = oldest[:min(most, len(oldest))]
	for _, seq := range oldest {
		delete(u.tasks, seq)
	}
	u.taken += len(oldest)
	if len(u.tasks) > 0 {
		select {
		case u.added <- struct{}{}:
		default:
		}
	}
	return oldest
}

// told says that so many tasks which some returned are told of, or were added
// again.
func (u *untold) told(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken -= n
	u.quiet.Broadcast()
}

// await blocks until there is nothing to tell, or ctx ends.
func (u *untold) await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { u.told(0) })()
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.tasks)+u.taken > 0 && ctx.Err() == nil {
		u.quiet.Wait()
	}
	return context.Cause(ctx)
}
