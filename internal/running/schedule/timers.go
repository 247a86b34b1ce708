package schedule

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

const (
	recheck   = time.Minute // the longest sleep of Serve: the runtime's timers stop while a machine sleeps, and the wall clock can change
	retryRows = time.Second // the pause after rows could not be read
	mostRows  = 64          // how many rows are read at once
)

// Timers says when tasks are looked at again: when the ledger's rows of them are due, by the wall
// clock, and after pauses that concern this process alone, such as one after a file could not be
// read. Pauses use the boot clock, which can't be set and counts sleep. A look is a hint: its
// receiver reads the task's state and does what is due.
type Timers struct {
	changed    chan struct{}
	busy       func()
	wall, boot func() time.Time
	from       task.Look // no row after it was looked at; only Serve uses it

	mu    sync.Mutex // guards the fields below
	soon  map[pause]moment
	first time.Time // no pause ends earlier; zero: there is none
	asked time.Time // what was due then is being looked at
	next  time.Time // no row is due earlier after that; zero: none is
}

// A pause is one before a look at a task. No other one ends that between two attempts.
type pause struct {
	task    int64
	backoff bool
}

// A moment is the end of a pause.
type moment struct {
	at  time.Time
	now bool // the engine isn't idle before the look
}

// A look is one that is due.
type look struct {
	task int64
	moment
}

// Rows returns up to limit rows of the ledger in the order in which they are due, after another one.
type Rows func(ctx context.Context, after task.Look, limit int) ([]task.Look, error)

// NewTimers returns Timers without any pause. It calls busy for each look of Now.
func NewTimers(busy func()) *Timers {
	return &Timers{
		changed: make(chan struct{}, 1), busy: busy, soon: map[pause]moment{}, next: time.Unix(0, 0),
		wall: func() time.Time { return time.Now().Round(0) }, boot: bootClock, // Round strips the monotonic clock
	}
}

// bootClock returns the time since boot, including sleep.
func bootClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now() // can't happen: every supported kernel has this clock
	}
	return time.Unix(now.Unix())
}

// Written says when a row is due that a transaction has written; zero: at no time.
func (t *Timers) Written(seq int64, due time.Time) {
	if due.IsZero() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !due.After(t.asked) { // those who asked may not have seen it
		t.add(pause{task: seq}, moment{at: t.boot()})
		return
	}
	if t.next.IsZero() || due.Before(t.next) {
		t.next = due
		t.wake()
	}
}

// After has a task looked at after a pause. Of several, the shortest counts.
func (t *Timers) After(seq int64, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(pause{task: seq}, moment{at: t.boot().Add(length)})
}

// Now has a task looked at at once. The engine isn't idle before that.
func (t *Timers) Now(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(pause{task: seq}, moment{at: t.boot(), now: true})
}

// add adds a pause, or shortens it. The caller holds mu.
func (t *Timers) add(p pause, m moment) {
	before, set := t.soon[p]
	if m.now && !before.now {
		t.busy()
	}
	if m.now = m.now || before.now; set && before.at.Before(m.at) {
		m.at = before.at
	}
	t.set(p, m)
}

// set sets the end of a pause. The caller holds mu.
func (t *Timers) set(p pause, m moment) {
	t.soon[p] = m
	if t.first.IsZero() || m.at.Before(t.first) {
		t.first = m.at
		t.wake()
	}
}

func (t *Timers) wake() {
	select {
	case t.changed <- struct{}{}:
	default: // Serve wakes up already
	}
}

// StartBackoff begins the pause between two attempts at a task.
func (t *Timers) StartBackoff(seq int64, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(pause{task: seq, backoff: true}, moment{at: t.boot().Add(length)})
}

// EndBackoff ends the pause between two attempts at a task.
func (t *Timers) EndBackoff(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.soon, pause{task: seq, backoff: true})
}

// InBackoff reports whether the pause between two attempts at a task goes on.
func (t *Timers) InBackoff(seq int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.soon[pause{task: seq, backoff: true}].at.After(t.boot())
}

// Serve calls begin for each task that is to be looked at, until ctx ends. now says that Now was called for it.
func (t *Timers) Serve(ctx context.Context, rows Rows, begin func(seq int64, now bool)) {
	next := time.NewTimer(recheck)
	defer next.Stop()
	for {
		looks, wait := t.due(ctx, rows)
		for _, l := range looks {
			begin(l.task, l.now)
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

// due returns what is to be looked at, and the wait for more; a negative wait means that there is none.
func (t *Timers) due(ctx context.Context, rows Rows) (looks []look, wait time.Duration) {
	looks, wait = t.ended()
	ended := len(looks)
	found, later := t.dueRows(ctx, rows)
	for _, seq := range found {
		if !slices.ContainsFunc(looks[:ended], func(l look) bool { return l.task == seq }) {
			looks = append(looks, look{task: seq})
		}
	}
	if wait < 0 || later >= 0 && later < wait {
		wait = later
	}
	return looks, wait
}

// ended removes the pauses that have ended and returns their looks in order, with the wait for the
// next end; a negative wait means that no pause is left.
func (t *Timers) ended() (looks []look, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.boot()
	if t.first.IsZero() || t.first.After(now) {
		return nil, waitFor(t.first, now)
	}
	t.first = time.Time{}
	for p, m := range t.soon {
		if m.at.After(now) {
			t.first = core.Earliest(t.first, m.at)
			continue
		}
		delete(t.soon, p)
		looks = append(looks, look{p.task, m})
	}
	if rest := now.Add(time.Duration(len(t.soon)) * time.Microsecond); !t.first.IsZero() && t.first.Before(rest) {
		t.first = rest // with many, to go through them takes a part of the time only
	}
	slices.SortFunc(looks, func(a, b look) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.task, b.task)) })
	return looks, waitFor(t.first, now)
}

// dueRows returns the tasks whose rows have become due, with the wait for the next row; a negative
// wait means that there is none.
func (t *Timers) dueRows(ctx context.Context, rows Rows) (over []int64, wait time.Duration) {
	now, some := t.ask()
	if !some {
		return nil, t.answer(now, time.Time{})
	}
	found, err := rows(ctx, t.from, mostRows)
	if err != nil {
		t.answer(now, now)
		return nil, retryRows
	}
	t.from = task.Look{At: now, Task: math.MaxInt64}
	next := time.Time{}
	for _, row := range found {
		if row.At.After(now) {
			next = row.At
			break
		}
		over = append(over, row.Task)
	}
	if len(over) == mostRows {
		t.from, next = found[mostRows-1], now
	}
	if wait = t.answer(now, next); wait < 0 && len(over) > 0 {
		wait = recheck // their looks may be too early if the clock is set back just now
	}
	return over, wait
}

// ask returns the time, and whether rows are due. What is written from here on and due by that
// time, Written has looked at.
func (t *Timers) ask() (now time.Time, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now = t.wall()
	if now.Before(t.asked) { // it was set back
		t.next = now
		if now.Before(t.from.At) {
			t.from = task.Look{At: now}
		}
	}
	t.asked = now
	if some = !t.next.IsZero() && !t.next.After(now); some {
		t.next = time.Time{}
	}
	return now, some
}

// answer notes when the next row is due, and returns the wait for it.
func (t *Timers) answer(now, next time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = core.Earliest(t.next, next)
	return waitFor(t.next, now)
}

// waitFor returns the wait for a time, at most recheck; negative for the zero time.
func waitFor(at, now time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return min(max(at.Sub(now), 0), recheck)
}
