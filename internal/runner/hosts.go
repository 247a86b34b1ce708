package runner

import (
	"sync"
	"sync/atomic"
)

// hosts are goroutines that host runs, one at a time. Some of them stay for the
// next run, because their stacks have grown by then: to grow a new one took 20 us
// of each.
type hosts struct {
	work sync.WaitGroup
	jobs chan func()
	idle atomic.Int32
	left <-chan struct{} // closed when no idle one is to stay any more
}

// maxIdle is how many stay.
const maxIdle = 16

// take has one of them do a job.
func (h *hosts) take(job func()) {
	select {
	case h.jobs <- job:
	default:
		h.work.Go(func() {
			for job != nil {
				job()
				job = h.next()
			}
		})
	}
}

// next waits for another job, or returns nil when enough others do.
func (h *hosts) next() (job func()) {
	defer h.idle.Add(-1)
	if h.idle.Add(1) > maxIdle {
		return nil
	}
	select {
	case job = <-h.jobs:
	case <-h.left:
	}
	return job
}
