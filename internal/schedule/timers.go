package schedule

import (
	"context"
	"sync"
	"time"
)

// recheck bounds how long Serve trusts the runtime's timers: these stand still while
// a machine sleeps, and the wall clock can be set.
const recheck = time.Minute

// A timer asks to look at a task again at a time.
type timer struct {
	at  time.Time
	seq int64
}

// Timers keeps the timers of all tasks. A timer is a hint: its receiver looks the
// task's state up and does what is due. What is to happen at a time of day goes by the
// wall clock, and a pause by the boot clock, which nobody can set and which goes on
// while the machine sleeps.
type Timers struct {
	changed chan struct{}
	wall    *clockTimers
	boot    *clockTimers

	mu       sync.Mutex          // guards backoffs
	backoffs map[int64]time.Time // when pauses between attempts end, by the boot clock
}

// NewTimers returns timers of which none is set.
func NewTimers() *Timers {
	return &Timers{
		changed: make(chan struct{}, 1), backoffs: map[int64]time.Time{},
		wall: newClockTimers(func() time.Time { return time.Now().Round(0) }), // without the monotonic clock
		boot: newClockTimers(bootClock),
	}
}

// Set asks for a task to be looked at again; a zero time asks for nothing. A task has
// one such timer, its earliest: its receiver sets the next one.
func (t *Timers) Set(seq int64, at time.Time) {
	if !at.IsZero() && t.wall.add(timer{at: at.Round(0), seq: seq}) {
		t.wake()
	}
}

// After is Set for a pause, however the wall clock is set meanwhile.
func (t *Timers) After(seq int64, pause time.Duration) {
	if t.boot.add(timer{at: t.boot.now().Add(pause), seq: seq}) {
		t.wake()
	}
}

func (t *Timers) wake() {
	select {
	case t.changed <- struct{}{}:
	default: // Serve will look anyway
	}
}

// StartBackoff is After for the pause between two attempts at a task.
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

// BackoffLeft is how much is left of the pause of a task; 0 when it is over.
func (t *Timers) BackoffLeft(seq int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	end, there := t.backoffs[seq]
	if !there {
		return 0
	}
	return max(0, end.Sub(t.boot.now()))
}

// due removes what is due and says how long the rest can wait; a negative
// wait means that nothing is left.
func (t *Timers) due() (seqs []int64, wait time.Duration) {
	seqs, wait = t.wall.due()
	more, other := t.boot.due()
	if wait < 0 || other >= 0 && other < wait {
		wait = other
	}
	return append(seqs, more...), wait
}

// Serve calls fire for each task whose time has come, until ctx ends.
func (t *Timers) Serve(ctx context.Context, fire func(seq int64)) {
	next := time.NewTimer(recheck)
	defer next.Stop()
	for {
		seqs, wait := t.due()
		for _, seq := range seqs {
			fire(seq)
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
