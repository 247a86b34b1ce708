package schedule

import "sync"

// A WorkerPool runs each job in a goroutine at once. It keeps some goroutines for later
// jobs, because the stack of a new goroutine grows in steps to the size that a transaction
// needs: 8 us of CPU time each.
type WorkerPool struct {
	jobs    chan func()
	idle    chan struct{} // a token for each idle goroutine
	over    chan struct{} // closed when no more jobs come
	workers sync.WaitGroup
}

// NewWorkerPool returns a pool in which at most idle goroutines wait for jobs.
func NewWorkerPool(idle int) *WorkerPool {
	return &WorkerPool{jobs: make(chan func()), idle: make(chan struct{}, idle), over: make(chan struct{})}
}

// Go starts a job and returns.
func (p *WorkerPool) Go(job func()) {
	select {
	case p.jobs <- job:
	default: // no goroutine is idle
		p.workers.Go(func() {
			for ; job != nil; job = p.next() {
				job()
			}
		})
	}
}

// next waits for a job, and returns nil to a goroutine that must end.
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

// Close ends the idle goroutines. No job may follow.
func (p *WorkerPool) Close() { close(p.over) }

// Wait blocks until all jobs of a closed pool have ended.
func (p *WorkerPool) Wait() { p.workers.Wait() }
