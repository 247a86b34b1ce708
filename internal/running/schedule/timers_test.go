package schedule

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// startAll runs functions, each in a goroutine that the returned group waits for.
func startAll(functions ...func()) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	return &group
}

// dueOf returns the tasks that are due.
func dueOf(t *Timers) (seqs []int64, wait time.Duration) {
	over, wait := t.due()
	for _, o := range over {
		seqs = append(seqs, o.seq)
	}
	return seqs, wait
}

func TestTheEngineIsBusyUntilATaskIsCheckedThatIsToBeCheckedNow(t *testing.T) {
	boot, busy := time.Unix(1000, 0), 0
	timers := NewTimers(func() { busy++ })
	timers.boot.now = func() time.Time { return boot }
	timers.After(1, 0)
	timers.Now(1) // also when its time has come already
	timers.Now(1)
	timers.After(2, time.Second)
	timers.Now(2)
	if over, _ := timers.due(); busy != 2 || len(over) != 2 || !over[0].now || !over[1].now {
		t.Errorf("due = %+v, and the engine is busy with %d; want both tasks once, and 2", over, busy)
	}
	timers.Now(2)
	timers.After(3, 0)
	boot = boot.Add(time.Second)
	over, _ := timers.due()
	if busy != 3 || len(over) != 2 || !over[0].now || over[1].now {
		t.Errorf("due = %+v, and the engine is busy with %d; want task 2 and then 3 alone without being busy, and 3", over, busy)
	}
}

func TestTimersFireInOrderAndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		timers := NewTimers(func() {})
		fired := make(chan int64, 9)
		serving := startAll(func() { timers.Serve(ctx, func(seq int64, _ bool) { fired <- seq }) })
		now := time.Now()
		timers.Set(3, now.Add(3*time.Hour))
		timers.Set(1, now.Add(time.Second))
		timers.Set(2, now.Add(time.Minute+time.Second))
		timers.Set(9, time.Time{}) // no time, no timer
		for _, c := range []struct {
			wait time.Duration
			want []int64
		}{
			{999 * time.Millisecond, nil},
			{time.Millisecond, []int64{1}},
			{time.Minute, []int64{2}},
			{4 * time.Hour, []int64{3}},
		} {
			time.Sleep(c.wait) // the bubble's clock, no real one
			synctest.Wait()
			var fires []int64
			for len(fired) > 0 {
				fires = append(fires, <-fired)
			}
			if !slices.Equal(fires, c.want) {
				t.Errorf("fires %v; want %v", fires, c.want)
			}
		}
		cancel()
		serving.Wait()
	})
}

func TestATaskHasOneTimerItsEarliest(t *testing.T) {
	timers := NewTimers(func() {})
	now := time.Now()
	for i := range 1000 {
		timers.Set(1, now.Add(time.Duration(1000-i%500)*time.Millisecond))
	}
	timers.wall.now = func() time.Time { return now.Add(501 * time.Millisecond) }
	if seqs, wait := dueOf(timers); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v, %s; want task 1, once", seqs, wait)
	}
	timers.wall.now = func() time.Time { return now.Add(time.Hour) }
	if seqs, _ := dueOf(timers); len(seqs) > 0 {
		t.Errorf("due later = %v; want nothing more", seqs)
	}
}

func TestAPauseIsAsLongAsItWasMeantHoweverTheWallClockIsSet(t *testing.T) {
	for name, wallStep := range map[string]time.Duration{"not set": 0, "set back": -time.Hour, "set forward": time.Hour} {
		wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
		timers := NewTimers(func() {})
		timers.wall.now, timers.boot.now, timers.pauses.now = func() time.Time { return wall }, func() time.Time { return boot }, func() time.Time { return boot }
		timers.StartBackoff(1, time.Minute)
		timers.After(2, time.Minute)
		wall, boot = wall.Add(59*time.Second+wallStep), boot.Add(59*time.Second)
		if seqs, wait := dueOf(timers); len(seqs) > 0 || wait != time.Second || !timers.InBackoff(1) {
			t.Errorf("%s: after 59 s due = %v, %v, in the pause %v; want nothing, a second, and true", name, seqs, wait, timers.InBackoff(1))
		}
		boot = boot.Add(time.Second) // asleep or awake
		if seqs, _ := dueOf(timers); !slices.Equal(seqs, []int64{2, 1}) || timers.InBackoff(1) {
			t.Errorf("%s: after a minute due = %v, in the pause %v; want both tasks, false", name, seqs, timers.InBackoff(1))
		}
	}
}

func TestAPauseIsEndedByNothingElse(t *testing.T) {
	boot := time.Unix(1000, 0)
	timers := NewTimers(func() {})
	timers.boot.now, timers.pauses.now = func() time.Time { return boot }, func() time.Time { return boot }
	timers.StartBackoff(1, time.Minute)
	timers.After(1, time.Second)
	timers.Now(1)
	boot = boot.Add(time.Second)
	if seqs, wait := dueOf(timers); !slices.Equal(seqs, []int64{1}) || wait != 59*time.Second || !timers.InBackoff(1) {
		t.Errorf("after a second due = %v, %v, in the pause %v; want the task for another reason, 59 s, and true", seqs, wait, timers.InBackoff(1))
	}
	timers.StartBackoff(1, time.Second) // the task was tried meanwhile
	timers.StartBackoff(1, 2*time.Minute)
	boot = boot.Add(119 * time.Second)
	if seqs, wait := dueOf(timers); len(seqs) > 0 || wait != time.Second {
		t.Errorf("before the end of the second pause due = %v, %v; want nothing, and a second", seqs, wait)
	}
	timers.EndBackoff(1)
	boot = boot.Add(time.Second)
	if seqs, wait := dueOf(timers); len(seqs) > 0 || wait >= 0 || timers.InBackoff(1) {
		t.Errorf("after the end of a pause due = %v, %v; want nothing any more", seqs, wait)
	}
}

func TestATimeOfDayGoesByTheWallClock(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers := NewTimers(func() {})
	timers.wall.now, timers.boot.now = func() time.Time { return wall }, func() time.Time { return boot }
	timers.Set(1, wall.Add(time.Hour))
	wall = wall.Add(time.Hour) // somebody has set it
	if seqs, _ := dueOf(timers); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1", seqs)
	}
}

func TestTheNextTimerIsTheEarlierOneOfBothClocks(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	for _, c := range []struct{ wall, boot, want time.Duration }{
		{30 * time.Second, 10 * time.Second, 10 * time.Second},
		{10 * time.Second, 30 * time.Second, 10 * time.Second},
		{30 * time.Second, 0, 30 * time.Second},
		{0, 30 * time.Second, 30 * time.Second},
	} {
		timers := NewTimers(func() {})
		timers.wall.now, timers.boot.now = func() time.Time { return wall }, func() time.Time { return boot }
		if c.wall > 0 {
			timers.Set(1, wall.Add(c.wall))
		}
		if c.boot > 0 {
			timers.After(2, c.boot)
		}
		if _, wait := timers.due(); wait != c.want {
			t.Errorf("timers in %v by the wall clock and %v by the boot clock: the wait is %v; want %v", c.wall, c.boot, wait, c.want)
		}
	}
}

func TestPausesGoByTheTimeSinceTheMachineStarted(t *testing.T) {
	if got := bootClock(); got.After(time.Now().AddDate(-10, 0, 0)) {
		t.Errorf("the boot clock is at %v, which is a time of day; want the time since the machine started", got)
	}
}
