package schedule

import "sync"

// A WorkerPool does jobs at the same time, each at once. Some of its goroutines wait
// for another job, since the stack of a new goroutine grows step by step to what a
// transaction takes: 8 us of processor time each.
type WorkerPool struct {
	jobs    chan func()
	idle    chan struct{} // a token for each goroutine that waits
	over    chan struct{} // closed when there are no more jobs
	workers sync.WaitGroup
}

// NewWorkerPool returns a pool in which at most idle goroutines wait for jobs.
func NewWorkerPool(idle int) *WorkerPool {
	return &WorkerPool{jobs: make(chan func()), idle: make(chan struct{}, idle), over: make(chan struct{})}
}

// Go has a job done, and does not wait for it.
func (p *WorkerPool) Go(job func()) {
	select {
	case p.jobs <- job:
	default: // no goroutine waits
		p.workers.Go(func() {
			for ; job != nil; job = p.next() {
				job()
			}
		})
	}
}

// next waits for a job, and returns nil for a goroutine that is to end.
func (p *WorkerPool) next() (job func()) {
	select {
	case p.idle <- struct{}{}:
		defer func() { <-p.idle }()
	default:
		return nil
	}
	select {
	case job = <-p.jobs:
	case <-p.over:
	}
	return job
}

// Close ends the goroutines that wait: there are no more jobs.
func (p *WorkerPool) Close() { close(p.over) }

// Wait blocks until the jobs of a closed pool are done.
func (p *WorkerPool) Wait() { p.workers.Wait() }
