package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/internal/task"
)

// startAll runs functions, each in a goroutine that the returned group waits for.
func startAll(functions ...func()) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	return &group
}

func TestAlarmsRingInOrderAndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := newAlarms()
		rings := make(chan int64, 9)
		serving := startAll(func() { a.serve(ctx, func(seq int64) { rings <- seq }) })
		now := time.Now()
		a.set(3, now.Add(3*time.Hour))
		a.set(1, now.Add(time.Second))
		a.set(2, now.Add(time.Minute+time.Second))
		a.set(9, time.Time{}) // no time, no alarm
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
			var rang []int64
			for len(rings) > 0 {
				rang = append(rang, <-rings)
			}
			if !slices.Equal(rang, c.want) {
				t.Errorf("rang %v; want %v", rang, c.want)
			}
		}
		cancel()
		serving.Wait()
	})
}

func TestATaskHasOneAlarmItsEarliest(t *testing.T) {
	a := newAlarms()
	now := time.Now()
	for i := range 1000 {
		a.set(1, now.Add(time.Duration(1000-i%500)*time.Millisecond))
	}
	a.wall.now = func() time.Time { return now.Add(501 * time.Millisecond) }
	if seqs, wait := a.due(); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v, %s; want task 1, once", seqs, wait)
	}
	a.wall.now = func() time.Time { return now.Add(time.Hour) }
	if seqs, _ := a.due(); len(seqs) > 0 {
		t.Errorf("due later = %v; want nothing more", seqs)
	}
}

func TestAPauseIsAsLongAsItWasMeantHoweverTheWallClockIsSet(t *testing.T) {
	for name, wallStep := range map[string]time.Duration{"not set": 0, "set back": -time.Hour, "set forward": time.Hour} {
		wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
		a := newAlarms()
		a.wall.now, a.boot.now = func() time.Time { return wall }, func() time.Time { return boot }
		a.rest(1, time.Minute)
		a.after(2, time.Minute)
		wall, boot = wall.Add(59*time.Second+wallStep), boot.Add(59*time.Second)
		if seqs, wait := a.due(); len(seqs) > 0 || wait != time.Second || a.restLeft(1) != time.Second {
			t.Errorf("%s: after 59 s due = %v, %v, left %v; want nothing, and a second", name, seqs, wait, a.restLeft(1))
		}
		boot = boot.Add(time.Second) // asleep or awake
		if seqs, _ := a.due(); !slices.Equal(seqs, []int64{1, 2}) || a.restLeft(1) != 0 {
			t.Errorf("%s: after a minute due = %v, left %v; want both tasks, 0", name, seqs, a.restLeft(1))
		}
	}
}

func TestATimeOfDayGoesByTheWallClock(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	a := newAlarms()
	a.wall.now, a.boot.now = func() time.Time { return wall }, func() time.Time { return boot }
	a.set(1, wall.Add(time.Hour))
	wall = wall.Add(time.Hour) // somebody has set it
	if seqs, _ := a.due(); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1", seqs)
	}
}

func TestBackoffDoublesUpToFiveMinutes(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 50: 5 * time.Minute} {
		if got := backoff(time.Second, attempts); got > want || got < want*3/4 {
			t.Errorf("backoff(1s, %d) = %s; want %s, or up to a quarter less", attempts, got, want)
		}
	}
	if got := backoff(time.Hour, 1); got > 5*time.Minute {
		t.Errorf("backoff(1h, 1) = %s; want five minutes at most", got)
	}
}

func TestOnlyWhatWentWrongByItselfIsAFailure(t *testing.T) {
	now := time.Now()
	runs := []task.Run{
		{Attempt: 1, ExitCode: 75, Finished: now},
		{Attempt: 2, ExitCode: -1, Cause: task.CauseInterrupted, Finished: now},
		{Attempt: 3},               // never begun
		{Attempt: 4, ExitCode: -1}, // nothing could be started, or nobody knows
		{Attempt: 5},               // this one
	}
	if got := failures(runs, 5, task.Outcome{}); got != 3 {
		t.Errorf("failures = %d; want 3: attempts 1, 4 and 5", got)
	}
	if got := failures(runs, 5, task.Outcome{Exit: task.Exit{Cause: task.CauseInterrupted}}); got != 2 {
		t.Errorf("failures = %d when this one was interrupted; want 2", got)
	}
}
