package runner

import (
	"sync"
	"sync/atomic"
)

// A hostPool runs jobs in goroutines. Some goroutines stay for later jobs, because their
// stacks have grown: growing a new one took 20 us a run.
type hostPool struct {
	work   sync.WaitGroup
	jobs   chan func()
	idle   atomic.Int32
	closed <-chan struct{} // closed when idle goroutines must end
}

// maxIdle limits the idle goroutines.
const maxIdle = 16

// run starts a job in a goroutine.
func (h *hostPool) run(job func()) {
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

// next waits for another job, or returns nil if there are enough idle goroutines.
func (h *hostPool) next() (job func()) {
	defer h.idle.Add(-1)
	if h.idle.Add(1) > maxIdle {
		return nil
	}
	select {
	case job = <-h.jobs:
	case <-h.closed:
	}
	return job
}
