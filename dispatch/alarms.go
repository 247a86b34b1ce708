package dispatch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// recheck bounds how long an alarm trusts its timer: timers stand still while
// a machine sleeps, and the wall clock can be set.
const recheck = time.Minute

// An alarm asks to look at a task again at a time.
type alarm struct {
	at  time.Time
	seq int64
}

// alarms keeps the alarms of all tasks. An alarm is a hint: whoever is called
// looks the task's state up and does what it finds due. What is to happen at a
// time of day goes by the wall clock, and a pause by the boot clock, which nobody
// can set and which goes on while the machine sleeps.
type alarms struct {
	changed chan struct{}
	wall    *schedule
	boot    *schedule

	mu    sync.Mutex          // guards rests
	rests map[int64]time.Time // when pauses between attempts end, by the boot clock
}

func newAlarms() *alarms {
	return &alarms{
		changed: make(chan struct{}, 1), rests: map[int64]time.Time{},
		wall: newSchedule(func() time.Time { return time.Now().Round(0) }), // without the monotonic clock
		boot: newSchedule(bootClock),
	}
}

// bootClock is the time since the machine was started, sleep included.
func bootClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now() // every kernel of ours has that clock
	}
	return time.Unix(now.Unix())
}

// set asks for a task to be looked at again; a zero time asks for nothing. A
// task has one such alarm, its earliest: whoever looks at it sets the next one.
func (a *alarms) set(seq int64, at time.Time) {
	if !at.IsZero() && a.wall.add(alarm{at: at.Round(0), seq: seq}) {
		a.wake()
	}
}

// after is set for a pause, however the wall clock is set meanwhile.
func (a *alarms) after(seq int64, pause time.Duration) {
	if a.boot.add(alarm{at: a.boot.now().Add(pause), seq: seq}) {
		a.wake()
	}
}

func (a *alarms) wake() {
	select {
	case a.changed <- struct{}{}:
	default: // it will look at the schedules anyway
	}
}

// rest is after for the pause between two attempts at a task.
func (a *alarms) rest(seq int64, pause time.Duration) {
	a.mu.Lock()
	a.rests[seq] = a.boot.now().Add(pause)
	a.mu.Unlock()
	a.after(seq, pause)
}

// rested ends the pause of a task.
func (a *alarms) rested(seq int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rests, seq)
}

// restLeft is how much is left of the pause of a task; 0 when it is over.
func (a *alarms) restLeft(seq int64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	end, there := a.rests[seq]
	if !there {
		return 0
	}
	return max(0, end.Sub(a.boot.now()))
}

// due removes what is due and says how long the rest can wait; a negative
// wait means that nothing is left.
func (a *alarms) due() (seqs []int64, wait time.Duration) {
	seqs, wait = a.wall.due()
	more, other := a.boot.due()
	if wait < 0 || other >= 0 && other < wait {
		wait = other
	}
	return append(seqs, more...), wait
}

// serve calls ring for each task whose time has come, until ctx ends.
func (a *alarms) serve(ctx context.Context, ring func(seq int64)) {
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for {
		seqs, wait := a.due()
		for _, seq := range seqs {
			ring(seq)
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		case <-timer.C:
		}
	}
}
