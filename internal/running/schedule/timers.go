package schedule

import (
	"context"
	"sync"
	"time"
)

// recheck is the longest sleep of Serve. The runtime's timers stop while a machine sleeps,
// and the wall clock can change.
const recheck = time.Minute

// A timer is a request to check a task at a time.
type timer struct {
	at  time.Time
	seq int64
	now bool // the engine isn't idle before its task was checked
}

// Timers keeps the timers of all tasks. A timer is a hint: its receiver reads the task's
// state and does what is due. Times of day use the wall clock. Pauses use the boot clock,
// which can't be set and counts sleep.
type Timers struct {
	changed chan struct{}
	wall    *clockTimers
	boot    *clockTimers
	busy    func()

	mu       sync.Mutex          // guards backoffs
	backoffs map[int64]time.Time // ends of pauses between attempts, on the boot clock
}

// NewTimers returns Timers without any timer. It calls busy for each timer of Now.
func NewTimers(busy func()) *Timers {
	return &Timers{
		busy: busy, changed: make(chan struct{}, 1), backoffs: map[int64]time.Time{},
		wall: newClockTimers(func() time.Time { return time.Now().Round(0) }), // strips the monotonic clock
		boot: newClockTimers(bootClock),
	}
}

// Set sets a timer for a task; a zero time sets none. Only the earliest timer of a task is
// kept: its receiver sets the next one.
func (t *Timers) Set(seq int64, at time.Time) {
	if !at.IsZero() && t.wall.add(timer{at: at.Round(0), seq: seq}) {
		t.wake()
	}
}

// After sets a timer after a pause, independent of changes of the wall clock.
func (t *Timers) After(seq int64, pause time.Duration) {
	if t.boot.add(timer{at: t.boot.now().Add(pause), seq: seq}) {
		t.wake()
	}
}

// Now has a task checked at once. The engine isn't idle before that.
func (t *Timers) Now(seq int64) {
	if t.boot.add(timer{at: t.boot.now(), seq: seq, now: true}) {
		t.busy()
		t.wake()
	}
}

func (t *Timers) wake() {
	select {
	case t.changed <- struct{}{}:
	default: // Serve wakes up already
	}
}

// StartBackoff sets a timer for the pause between two attempts at a task.
func (t *Timers) StartBackoff(seq int64, pause time.Duration) {
	t.mu.Lock()
	t.backoffs[seq] = t.boot.now().Add(pause)
	t.mu.Unlock()
	t.After(seq, pause)
}

// EndBackoff ends the pause of a task.
func (t *Timers) EndBackoff(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.backoffs, seq)
}

// BackoffLeft returns the rest of a task's pause; 0 if it is over.
func (t *Timers) BackoffLeft(seq int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	end, there := t.backoffs[seq]
	if !there {
		return 0
	}
	return max(0, end.Sub(t.boot.now()))
}

// due removes and returns the timers whose time has come, and returns the wait until the
// next one; a negative wait means that there is none.
func (t *Timers) due() (over []timer, wait time.Duration) {
	over, wait = t.wall.due()
	more, other := t.boot.due()
	if wait < 0 || other >= 0 && other < wait {
		wait = other
	}
	return append(over, more...), wait
}

// Serve calls fire for each task whose time has come, until ctx ends. now says that its timer is one of Now.
func (t *Timers) Serve(ctx context.Context, fire func(seq int64, now bool)) {
	next := time.NewTimer(recheck)
	defer next.Stop()
	for {
		over, wait := t.due()
		for _, o := range over {
			fire(o.seq, o.now)
		}
		if wait < 0 {
			next.Stop()
		} else {
			next.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-next.C:
		}
	}
}
