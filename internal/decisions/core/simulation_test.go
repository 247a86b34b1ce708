package core_test

import (
	"flag"
	"strings"
	"testing"
)

var (
	schedules = flag.Int("schedules", 2000, "how many random schedules to play")
	firstSeed = flag.Uint64("schedule", 1, "the seed of the first schedule")
)

const stepsOfSchedule = 60

func TestEveryScheduleKeepsThePromises(t *testing.T) {
	crashes := 0
	for n := range *schedules {
		seed := *firstSeed + uint64(n)
		w := newWorld(seeded(seed))
		if err := w.play(stepsOfSchedule); err != nil {
			again := newWorld(seeded(seed))
			again.tell = true
			again.play(stepsOfSchedule)
			t.Fatalf("schedule %d: %v\n%s", seed, err, strings.Join(again.log, "\n"))
		}
		crashes += w.crashes
	}
	if *schedules >= 1000 && crashes == 0 {
		t.Error("nothing ever crashed")
	}
}

func BenchmarkSchedule(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		seed++
		if err := newWorld(seeded(seed)).play(stepsOfSchedule); err != nil {
			b.Fatal(seed, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
}
