package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// Reasons why a question has no answer.
var (
	ErrTimeout  = errors.New("there was no answer within the timeout")
	ErrDeadline = errors.New("there was no answer at the deadline")
	ErrTooLong  = fmt.Errorf("the answer is longer than %d bytes", maxLine)
	ErrClosed   = errors.New("the workers are being ended")
)

// A StartError says why no process could be started.
type StartError struct {
	Command string // Argv[0]
	Err     error
}

func (e *StartError) Error() string { return "start " + e.Command + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// An ExitError says how the process with the question ended.
type ExitError struct {
	Code         int    // -1 if a signal ended it
	Signal       string // "SIGKILL (9)"; "" if it exited
	OutputClosed bool   // it closed its output, so the pool ended it
	Stderr       []byte // the end of its stderr
	Cut          bool   // stderr was longer
	Unsandboxed  bool   // its sandbox couldn't be made, so it never ran; Stderr says why
	OutOfMemory  bool   // the kernel killed a process because of the limit of its sandbox
}

func (e *ExitError) Error() string {
	switch {
	case e.OutputClosed:
		return "the worker closed its standard output"
	case e.Signal != "":
		return "the worker was ended by " + e.Signal
	}
	return fmt.Sprintf("the worker exited with status %d", e.Code)
}

// A Question is one line for one process.
type Question struct {
	ID       envelope.ID   // the task_id of the answer
	Line     []byte        // without a newline
	Timeout  time.Duration // from the time when a process gets it; 0: unlimited
	Deadline time.Time     // on the wall clock, also after changes of it; zero: none

	// Interim reports whether a line with the ID isn't the answer yet; nil: no line is. It
	// must not keep the line.
	Interim func(line []byte) bool
}

// An Answer is the outcome of a Question.
type Answer struct {
	Line     []byte        // nil with an error
	PID      int           // the process that got the question; 0: none
	Started  time.Time     // when it got the question
	Finished time.Time     // when it answered or ended
	Wall     time.Duration // between them, on the monotonic clock
	Sandbox  Sandbox       // of the process
}

// A call is a Question in the pool. Its events are that a process has it, and then the
// outcome; or only why no process has it.
type call struct {
	Question
	events chan event // buffers both
}

type event struct {
	by   *process // the process that has the question
	line []byte
	err  error
}

// errNotAsked ends a call that no process has read a byte of.
var errNotAsked = errors.New("not asked")

// lateGrace is the further wait for an answer after the end of ctx: most answers are nearly
// complete.
const lateGrace = 250 * time.Millisecond

// Ask asks a process of the pool, and blocks until one has a free place. All questions in
// the pool must have different IDs. The error is the cause of ctx, an error above, a
// *StartError or an *ExitError; Answer.PID says whether a process got the question. A
// process that doesn't answer in time gets no further questions, and is ended after its
// other answers.
func (p *Pool) Ask(ctx context.Context, q Question) (Answer, error) {
	c := &call{Question: q, events: make(chan event, 2)}
	c.Deadline = q.Deadline.Round(0) // without the monotonic clock: a deadline follows the wall clock
	for {
		a, err := p.ask(ctx, c)
		if err != errNotAsked {
			return a, err
		}
	}
}

func (p *Pool) ask(ctx context.Context, c *call) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if !p.begin() {
		return Answer{}, ErrClosed
	}
	timer := time.NewTimer(c.wait(time.Time{}, time.Now()))
	defer timer.Stop()
	for handed := false; !handed; {
		select {
		case p.calls <- c:
			handed = true
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		case <-p.closing:
			return Answer{}, ErrClosed
		case now := <-timer.C:
			if err := c.over(time.Time{}, now); err != nil {
				return Answer{}, err
			}
			timer.Reset(c.wait(time.Time{}, now))
		}
	}
	taken := <-c.events // soon: a call waits for the start of one process at most
	if taken.by == nil {
		return Answer{}, taken.err
	}
	a := Answer{PID: taken.by.pid, Started: time.Now(), Sandbox: taken.by.sandbox}
	timer.Reset(c.wait(a.Started, a.Started))
	e := c.await(ctx, taken.by, a.Started, timer)
	if e.err == errNotAsked {
		return Answer{}, errNotAsked
	}
	a.Line, a.Finished, a.Wall = e.line, time.Now(), time.Since(a.Started)
	return a, e.err
}

// await waits for the end of a call that a process has.
func (c *call) await(ctx context.Context, by *process, began time.Time, timer *time.Timer) event {
	done, over := ctx.Done(), error(nil)
	for {
		select {
		case e := <-c.events:
			return e
		case <-done:
			done, over = nil, context.Cause(ctx)
			timer.Reset(lateGrace)
		case now := <-timer.C:
			if over == nil {
				over = c.over(began, now)
			}
			switch {
			case over == nil:
				timer.Reset(c.wait(began, now))
			case by.abandon(c):
				return event{err: over}
			}
			// Otherwise the answer came at the same moment and is in the channel.
		}
	}
}

// recheck is the time between checks of the wall clock, which can change.
const recheck = time.Second

// wait returns the time until the next check of the limits. Began is when a process got the
// question; zero: none has it.
func (q *Question) wait(began, now time.Time) time.Duration {
	wait := recheck
	if q.Timeout > 0 && !began.IsZero() {
		wait = min(wait, began.Add(q.Timeout).Sub(now))
	}
	if !q.Deadline.IsZero() {
		wait = min(wait, q.Deadline.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// over returns the limit that is reached at now; nil for none.
func (q *Question) over(began, now time.Time) error {
	switch {
	case q.Timeout > 0 && !began.IsZero() && now.Sub(began) >= q.Timeout:
		return ErrTimeout
	case !q.Deadline.IsZero() && !now.Before(q.Deadline):
		return ErrDeadline
	}
	return nil
}
