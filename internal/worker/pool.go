// Package worker keeps processes that answer each line with a line. Whoever
// asks learns what became of the question: its answer, or how the process that
// had it ended. No process outlives its pool, nor a killed daemon.
package worker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A Spec says which processes a Pool keeps.
type Spec struct {
	Argv []string // Argv[0] is an absolute path, or a bare name on our PATH
	Env  []string // all there is, apart from Mark; nothing is inherited
	Cwd  string   // "" is a process's own directory
	Dir  string   // absolute, existing: each process has a directory in it, which goes with it
	Mark string   // the variable that is set to that directory, so that its processes can be found

	Count    int           // processes at most; at least 1
	InFlight int           // questions that one process has at once; at least 1
	Backoff  time.Duration // before the next process when one ended without an answer; doubles to half a minute
	Grace    time.Duration // between the end of input, SIGTERM and SIGKILL
}

// A Pool keeps the processes of one Spec. They are started when there is a
// question for them. A Pool may be used concurrently; Close ends it.
type Pool struct {
	spec    Spec
	notice  func(error)
	calls   chan *call
	closing chan struct{}
	grace   time.Duration  // once closing is closed, which publishes it
	hosts   sync.WaitGroup // one for each process there may be
	living  atomic.Int64   // processes

	mu     sync.Mutex // guards begun and closed
	begun  bool
	closed bool
}

// NewPool makes a Pool and starts nothing. Notice is told what an operator
// should know and no question has for an answer, such as a line that is none;
// it must not block.
func NewPool(s Spec, notice func(error)) *Pool {
	return &Pool{spec: s, notice: notice, calls: make(chan *call), closing: make(chan struct{})}
}

// begin gets the hosts going with the first question. It reports whether the
// pool is open.
func (p *Pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !p.begun {
		p.begun = true
		for range p.spec.Count {
			p.hosts.Go(p.host)
		}
	}
	return true
}

// Close takes no more questions, waits for those that are being answered, and
// ends the processes: the end of their input, SIGTERM and SIGKILL, with the
// lesser of grace and Spec.Grace in between. No process is left when it returns.
func (p *Pool) Close(grace time.Duration) {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.grace = true, min(grace, p.spec.Grace)
		close(p.closing)
	}
	p.mu.Unlock()
	p.hosts.Wait()
}

// host starts one process after another, each for a question that waits.
func (p *Pool) host() {
	fruitless := 0 // processes in a row that answered nothing
	for p.rest(fruitless) {
		var first *call
		select {
		case <-p.closing:
			return
		case first = <-p.calls:
		}
		pr, err := p.start()
		switch {
		case err != nil:
			p.refuse(first, err)
			fruitless++
		case pr.serve(first):
			fruitless = 0
		default:
			fruitless++
		}
	}
}

// refuse tells those who wait that there is no process for them. While another
// one lives, all but the first may wait for that.
func (p *Pool) refuse(first *call, err error) {
	first.events <- event{err: err}
	for p.living.Load() == 0 {
		select {
		case c := <-p.calls:
			c.events <- event{err: err}
		default:
			return
		}
	}
}

// longest bounds the pause before a process is started again.
const longest = 30 * time.Second

// rest pauses after fruitless processes, a random part shorter so that those
// that died together do not come back together. It reports false when the pool
// was closed.
func (p *Pool) rest(fruitless int) bool {
	pause := time.Duration(0)
	if fruitless > 0 && p.spec.Backoff > 0 {
		pause = min(min(p.spec.Backoff, longest)<<min(fruitless-1, 10), longest)
		pause -= rand.N(pause/2 + 1)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-p.closing:
		return false
	case <-timer.C:
		return true
	}
}
