package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// Why a question has no answer.
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

// An ExitError says how the process ended that had the question.
type ExitError struct {
	Code   int    // -1 when a signal ended it
	Signal string // "SIGKILL (9)", or "" when it exited
	Mute   bool   // it closed its output, so we ended it
	Words  []byte // the end of what it printed on stderr
	Cut    bool   // it printed more than Words
}

func (e *ExitError) Error() string {
	switch {
	case e.Mute:
		return "the worker closed its standard output"
	case e.Signal != "":
		return "the worker was ended by " + e.Signal
	}
	return fmt.Sprintf("the worker exited with status %d", e.Code)
}

// A Question is one line for one process.
type Question struct {
	ID       envelope.ID   // what the answer's task_id must be
	Line     []byte        // without a line end in it
	Timeout  time.Duration // from the moment a process has it; 0: none
	Deadline time.Time     // on the wall clock, wherever that is set to; zero: none
}

// An Answer is what came of a Question.
type Answer struct {
	Line     []byte        // what the process said; nil with an error
	PID      int           // the process that had the question; 0: none did
	Started  time.Time     // when it had it
	Finished time.Time     // when that was over
	Wall     time.Duration // in between, also across a clock that was set
}

// A call is a question on its way. Its events are that a process has it, and
// then how it ended; or only why no process has it.
type call struct {
	Question
	events chan event // has room for both
}

type event struct {
	by   *process // who has the question now
	line []byte
	err  error
}

// errAgain ends a call whose line no process has seen a byte of.
var errAgain = errors.New("not asked")

// parting is how much longer an answer is waited for when ctx has ended: most
// are nearly there.
const parting = 250 * time.Millisecond

// Ask asks a process of the pool, and blocks until there is one with room. No
// two questions with the same ID may be asked at once. The error is the cause
// of ctx, one of those above, a *StartError or an *ExitError; Answer.PID says
// whether a process had the question by then. One that does not answer in time
// takes no further questions, and is ended when it has answered its others.
func (p *Pool) Ask(ctx context.Context, q Question) (Answer, error) {
	c := &call{Question: q, events: make(chan event, 2)}
	c.Deadline = q.Deadline.Round(0) // wall clock only: a deadline moves with it
	for {
		a, err := p.ask(ctx, c)
		if err != errAgain {
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
	taken := <-c.events // soon: whoever takes a call starts a process at most
	if taken.by == nil {
		return Answer{}, taken.err
	}
	a := Answer{PID: taken.by.pid, Started: time.Now()}
	timer.Reset(c.wait(a.Started, a.Started))
	e := c.await(ctx, taken.by, a.Started, timer)
	if e.err == errAgain {
		return Answer{}, errAgain
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
			timer.Reset(parting)
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
			// Otherwise its answer came at the same moment, and lies there.
		}
	}
}

// recheck is how often the wall clock is looked at, which somebody may set.
const recheck = time.Second

// wait returns how long to wait before the limits are looked at again. Began
// is when a process had the question; zero: none has.
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

// over returns the limit that is reached at now.
func (q *Question) over(began, now time.Time) error {
	switch {
	case q.Timeout > 0 && !began.IsZero() && now.Sub(began) >= q.Timeout:
		return ErrTimeout
	case !q.Deadline.IsZero() && !now.Before(q.Deadline):
		return ErrDeadline
	}
	return nil
}
