package worker

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// linger is how long the output of an ended process is read. Everything it printed is there
// already, and an escaped child may hold its output open for ever.
const linger = 200 * time.Millisecond

// serve gives the process questions, first first, until it is retired, and then ends it. It
// reports whether the process answered any.
func (pr *process) serve(first *call) bool {
	defer pr.pool.live.Add(-1)
	var listening sync.WaitGroup
	listening.Go(pr.listen)
	listening.Go(func() { pr.tail.readFrom(pr.stderr) })
	pr.write(first)
	pr.drain()
	signalled := pr.end()
	pr.waiting.Wait()
	_ = pr.stdout.SetReadDeadline(time.Now().Add(linger))
	_ = pr.stderr.SetReadDeadline(time.Now().Add(linger))
	listening.Wait()
	defer pr.discard() // after conclude has read what the sandbox says
	return pr.conclude(signalled)
}

// drain waits until each question is answered or given up, or no answer can come any more.
func (pr *process) drain() {
	for range cap(pr.room) {
		select {
		case pr.room <- struct{}{}:
		case <-pr.silent:
			return
		case <-pr.exited:
			return
		}
	}
}

// conclude tells the waiting calls how the process ended.
func (pr *process) conclude(signalled bool) bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	how := &ExitError{Code: -1, Stderr: pr.tail.text, Cut: pr.tail.cut}
	if pr.status.Signaled() {
		how.Signal = fmt.Sprintf("%s (%d)", unix.SignalName(pr.status.Signal()), int(pr.status.Signal()))
	} else {
		how.Code = pr.status.ExitStatus()
	}
	if pr.sandbox.active() {
		how.Unsandboxed = pr.answers == 0 && !pr.sandbox.Began(pr.status.Signaled())
		how.OutOfMemory = pr.sandbox.OutOfMemory()
	}
	waiting := 0
	for _, c := range pr.asked {
		if c != nil {
			waiting++
			how.OutputClosed = signalled
			c.events <- event{err: how}
		}
	}
	switch {
	case pr.stuck:
		pr.pool.notice(fmt.Errorf("worker %d did not answer in time and was ended", pr.pid))
	case waiting > 0 || how.Signal != "" || how.Code != 0:
		pr.pool.notice(fmt.Errorf("worker %d ended with %d tasks unanswered: %w", pr.pid, waiting, how))
	}
	if pr.strayLines > 1 { // the first was reported
		pr.pool.notice(fmt.Errorf("worker %d printed %d lines that answer nothing", pr.pid, pr.strayLines))
	}
	return pr.answers > 0
}

// write writes questions to the process until it is retired. All waiting questions go in
// one write.
func (pr *process) write(first *call) {
	var text []byte
	batch := make([]*call, 0, cap(pr.room))
	pr.room <- struct{}{}
	for next := first; next != nil; next = pr.next() {
		batch = pr.accept(batch[:0], next)
		runtime.Gosched() // lets other callers add their questions: one write has four tasks instead of 1.3
		for more := pr.nextReady(); more != nil; more = pr.nextReady() {
			batch = pr.accept(batch, more)
		}
		text = text[:0]
		for _, c := range batch {
			text = append(append(text, c.Line...), '\n')
		}
		n, err := pr.stdin.Write(text)
		if err != nil {
			pr.retire()
			pr.requeue(batch, n)
			return
		}
		if cap(text) > maxText {
			text = nil // free an unusually large buffer
		}
	}
}

// maxText limits the write buffer that a process keeps.
const maxText = 256 << 10

// next blocks for a question, and returns nil if the process is retired.
func (pr *process) next() *call {
	select {
	case <-pr.retired:
		return nil
	case <-pr.pool.closing:
		return nil
	case pr.room <- struct{}{}:
	}
	select {
	case c := <-pr.pool.calls:
		return c
	case <-pr.retired:
	case <-pr.pool.closing:
	}
	<-pr.room
	return nil
}

// nextReady returns a waiting question, if there is a place for it.
func (pr *process) nextReady() *call {
	select {
	case pr.room <- struct{}{}:
	default:
		return nil
	}
	select {
	case c := <-pr.pool.calls:
		return c
	default:
		<-pr.room
		return nil
	}
}

var errTwice = errors.New("a task of this id is being answered already")

// accept assigns a question to the process.
func (pr *process) accept(batch []*call, c *call) []*call {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if _, twice := pr.asked[c.ID]; twice {
		<-pr.room
		c.events <- event{err: errTwice}
		return batch
	}
	c.events <- event{by: pr}
	pr.asked[c.ID] = c
	return append(batch, c)
}

// requeue gives back unwritten questions of a batch: another process may take them, and
// nothing is done twice.
func (pr *process) requeue(batch []*call, written int) {
	for _, c := range batch {
		if written <= 0 && pr.take(c) {
			c.events <- event{err: errNotAsked}
		}
		written -= len(c.Line) + 1
	}
}

// take removes a question that the process still has.
func (pr *process) take(c *call) bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.asked[c.ID] != c {
		return false
	}
	delete(pr.asked, c.ID)
	<-pr.room
	return true
}

// abandon gives up a question. Its effect on the process is unknown, so the process gets no
// more. It returns false if the answer has just come.
func (pr *process) abandon(c *call) bool {
	pr.mu.Lock()
	mine := pr.asked[c.ID] == c
	if mine {
		pr.asked[c.ID], pr.stuck = nil, true
	}
	pr.mu.Unlock()
	if mine {
		pr.retire() // before there is a place
		<-pr.room
	}
	return mine
}
