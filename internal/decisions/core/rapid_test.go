package core_test

import (
	"testing"

	"pgregory.net/rapid"
)

// Rapid runs the same world, and shortens a schedule that breaks a promise.
func TestRapidSchedulesKeepThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		if err := w.play(stepsOfSchedule); err != nil {
			t.Fatal(err)
		}
	})
}
