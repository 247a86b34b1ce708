package dispatch

import "sync"

// A crew does jobs at the same time, each at once. Some of those who have done one
// wait for another, as the stack of a new goroutine grows step by step to what
// a transaction takes: 8 us of processor time each.
type crew struct {
	jobs  chan func()
	seats chan struct{} // a token for each who waits
	over  chan struct{} // closed when there are no more jobs
	all   sync.WaitGroup
}

// newCrew makes a crew of whom at most so many wait.
func newCrew(waiting int) *crew {
	return &crew{jobs: make(chan func()), seats: make(chan struct{}, waiting), over: make(chan struct{})}
}

// do has a job done, and does not wait for it.
func (c *crew) do(job func()) {
	select {
	case c.jobs <- job:
	default: // nobody waits
		c.all.Go(func() {
			for ; job != nil; job = c.next() {
				job()
			}
		})
	}
}

// next waits for a job, and returns nil for who may go.
func (c *crew) next() (job func()) {
	select {
	case c.seats <- struct{}{}:
		defer func() { <-c.seats }()
	default:
		return nil
	}
	select {
	case job = <-c.jobs:
	case <-c.over:
	}
	return job
}

// dismiss lets all go who wait: there are no more jobs.
func (c *crew) dismiss() { close(c.over) }

// wait blocks until the jobs of a crew that is dismissed are done.
func (c *crew) wait() { c.all.Wait() }
