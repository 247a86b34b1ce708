package schedule

import (
	"context"
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
	pauses  *clockTimers // between two attempts at a task, on the boot clock
	busy    func()
}

// NewTimers returns Timers without any timer. It calls busy for each timer of Now.
func NewTimers(busy func()) *Timers {
	return &Timers{
		busy: busy, changed: make(chan struct{}, 1),
		wall: newClockTimers(func() time.Time { return time.Now().Round(0) }), // strips the monotonic clock
		boot: newClockTimers(bootClock), pauses: newClockTimers(bootClock),
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

// StartBackoff sets the timer for the pause between two attempts at a task. No other timer of the task
// ends it.
func (t *Timers) StartBackoff(seq int64, pause time.Duration) {
	t.pauses.remove(seq)
	t.pauses.add(timer{at: t.pauses.now().Add(pause), seq: seq})
	t.wake()
}

// EndBackoff ends the pause of a task.
func (t *Timers) EndBackoff(seq int64) { t.pauses.remove(seq) }

// InBackoff reports whether the pause of a task goes on.
func (t *Timers) InBackoff(seq int64) bool { return t.pauses.left(seq) > 0 }

// due removes and returns the timers whose time has come, and returns the wait until the
// next one; a negative wait means that there is none.
func (t *Timers) due() (over []timer, wait time.Duration) {
	wait = -1
	for _, c := range []*clockTimers{t.wall, t.boot, t.pauses} {
		some, next := c.due()
		if over = append(over, some...); wait < 0 || next >= 0 && next < wait {
			wait = next
		}
	}
	return over, wait
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
