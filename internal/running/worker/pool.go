// Package worker keeps processes that answer each line with a line. A caller gets the
// answer to its question, or how the process with the question ended. No process outlives
// its pool, or a killed daemon.
package worker

import (
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// A Spec configures the processes of a Pool.
type Spec struct {
	Argv []string // Argv[0] is an absolute path, or a bare name on the caller's PATH
	Env  []string // the whole environment except Mark; nothing is inherited
	Cwd  string   // "" is the process's own directory
	Dir  string   // absolute, existing; parent of each process's own directory, which is removed with it
	Mark string   // variable with that directory, for finding its processes

	// Enclose, unless nil, puts a command into a sandbox. Dir is the process's own directory.
	Enclose func(cmd *exec.Cmd, dir string) (Sandbox, error)

	Count    int           // number of processes; at least 1
	InFlight int           // concurrent questions of one process; at least 1
	Backoff  time.Duration // before the next process after one without an answer; doubles to half a minute
	Grace    time.Duration // between the end of input, SIGTERM and SIGKILL
}

// A Sandbox is the sandbox of one process. The zero value is none.
type Sandbox struct {
	Weaker      bool
	Release     func()                   // after the start; nil: there is no sandbox
	Began       func(signaled bool) bool // after the end: whether the command ran inside
	OutOfMemory func() bool              // after the end
	Close       func()                   // after all
}

// active reports whether there is a sandbox.
func (s Sandbox) active() bool { return s.Release != nil }

// A Pool keeps the processes of one Spec, and starts them when there are questions. It may
// be used concurrently; Close ends it.
type Pool struct {
	spec        Spec
	notice      func(error)
	calls       chan *call
	closing     chan struct{}
	grace       time.Duration  // set before closing is closed
	supervisors sync.WaitGroup // one for each possible process
	live        atomic.Int64   // live processes

	mu     sync.Mutex // guards begun and closed
	begun  bool
	closed bool
}

// NewPool returns a Pool without processes. Notice receives problems for the operator that
// belong to no question, such as a line that answers nothing; it must not block.
func NewPool(s Spec, notice func(error)) *Pool {
	return &Pool{spec: s, notice: notice, calls: make(chan *call), closing: make(chan struct{})}
}

// begin starts the supervisors with the first question. It reports whether the pool is
// open.
func (p *Pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !p.begun {
		p.begun = true
		for range p.spec.Count {
			p.supervisors.Go(p.supervise)
		}
	}
	return true
}

// Close accepts no more questions, waits for open ones, and ends the processes: end of
// input, SIGTERM and SIGKILL, each after the lesser of grace and Spec.Grace. No process is
// left when it returns.
func (p *Pool) Close(grace time.Duration) {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.grace = true, min(grace, p.spec.Grace)
		close(p.closing)
	}
	p.mu.Unlock()
	p.supervisors.Wait()
}

// supervise starts one process after another, each for a waiting question.
func (p *Pool) supervise() {
	failures := 0 // consecutive processes without an answer
	for p.backoff(failures) {
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
			failures++
		case pr.serve(first):
			failures = 0
		default:
			failures++
		}
	}
}

// refuse tells waiting callers that there is no process. While another process lives, only
// the first one is refused.
func (p *Pool) refuse(first *call, err error) {
	first.events <- event{err: err}
	for p.live.Load() == 0 {
		select {
		case c := <-p.calls:
			c.events <- event{err: err}
		default:
			return
		}
	}
}

// maxBackoff limits the pause before the next process.
const maxBackoff = 30 * time.Second

// backoff pauses after failures. A random part makes processes that died together restart
// at different times. It returns false if the pool was closed.
func (p *Pool) backoff(failures int) bool {
	pause := time.Duration(0)
	if failures > 0 && p.spec.Backoff > 0 {
		pause = min(min(p.spec.Backoff, maxBackoff)<<min(failures-1, 10), maxBackoff)
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
