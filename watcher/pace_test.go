package watcher_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/watcher"
)

// times runs pace while hinter hints, and returns the times of the looks.
func times(t *testing.T, took time.Duration, hinter func(hint func())) (looks []time.Duration) {
	return timesOfBoth(t, took, func(now, _ func()) { hinter(now) })
}

// timesOfBoth is times for hints of both kinds.
func timesOfBoth(t *testing.T, took time.Duration, hinter func(now, soon func())) (looks []time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	now, soon := make(chan struct{}, 1), make(chan struct{}, 1)
	var pacing sync.WaitGroup
	pacing.Go(func() {
		watcher.Pace(ctx, now, soon, func() {
			looks = append(looks, time.Since(start))
			time.Sleep(took)
		})
	})
	hint := func(at chan struct{}) func() {
		return func() {
			select {
			case at <- struct{}{}:
			default:
			}
		}
	}
	hinter(hint(now), hint(soon))
	time.Sleep(time.Hour) // no more hints
	cancel()
	pacing.Wait()
	return looks
}

func TestTheFirstHintLooksAtOnceAndTheLastIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := times(t, 0, func(hint func()) {
			hint()
			time.Sleep(watcher.Gap / 2)
			hint()
			hint()
			time.Sleep(time.Minute)
			hint()
		})
		want := []time.Duration{0, watcher.Gap, watcher.Gap/2 + time.Minute}
		if !slices.Equal(got, want) {
			t.Errorf("looks at %v, want %v", got, want)
		}
	})
}

func TestHintsNeverPutALookOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := times(t, 0, func(hint func()) {
			for range 1000 {
				hint()
				time.Sleep(watcher.Longest / 10)
			}
		})
		if len(got) < 99 || len(got) > 105 {
			t.Errorf("%d looks in a burst of 100 of the longest gaps, want about one for each", len(got))
		}
	})
}

func TestAHintDuringALookIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := times(t, time.Second, func(hint func()) {
			hint()
			time.Sleep(time.Second / 2)
			hint()
		})
		want := []time.Duration{0, time.Second + watcher.Gap}
		if !slices.Equal(got, want) {
			t.Errorf("looks at %v, want %v", got, want)
		}
	})
}

func TestNoHintNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := times(t, 0, func(func()) {}); len(got) > 0 {
			t.Errorf("looks at %v, want none", got)
		}
	})
}

func TestTheGapGrowsInABurstAndNotWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		burst := func(hint func()) {
			for range 20 {
				hint()
				time.Sleep(watcher.Gap / 2)
			}
		}
		got := times(t, 0, func(hint func()) {
			burst(hint)
			time.Sleep(time.Minute)
			hint()
			time.Sleep(2 * watcher.Gap)
			hint()
			time.Sleep(watcher.Gap / 2)
			hint()
		})
		const later = time.Minute + 10*watcher.Gap
		want := []time.Duration{
			0, watcher.Gap, 3 * watcher.Gap, 3*watcher.Gap + watcher.Longest,
			3*watcher.Gap + 2*watcher.Longest, 3*watcher.Gap + 3*watcher.Longest,
			later, later + 2*watcher.Gap, later + 3*watcher.Gap,
		}
		if !slices.Equal(got, want) {
			t.Errorf("looks at %v, want %v", got, want)
		}
	})
}

func TestHintsThatMayWaitCauseOneLookTogetherWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := timesOfBoth(t, 0, func(now, soon func()) {
			for range 9 { // these don't delay the look
				soon()
				time.Sleep(watcher.Patience / 10)
			}
			time.Sleep(time.Minute)
			soon()
			time.Sleep(watcher.Patience / 2)
			now()
		})
		want := []time.Duration{watcher.Patience, time.Minute + 14*watcher.Patience/10}
		if !slices.Equal(got, want) {
			t.Errorf("looks at %v, want %v", got, want)
		}
	})
}
