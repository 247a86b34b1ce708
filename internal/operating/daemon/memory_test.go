package daemon

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// given is what the runtime works with now.
type given struct {
	procs, percent int
	limit          int64
}

func givenNow() given {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return given{runtime.GOMAXPROCS(0), percent, debug.SetMemoryLimit(-1)}
}

func TestADaemonIsGivenMoreToWorkWithForAsLongAsItServes(t *testing.T) {
	unsetenv(t, "GOMAXPROCS", "GOGC", "GOMEMLIMIT")
	before := givenNow()
	undo := tuneRuntime(1000)
	if got, want := givenNow(), (given{procsPerCPU * before.procs, gcPercent, baseMemory + 1000*bytesPerTask}); got != want {
		t.Errorf("a daemon works with %+v; want %+v", got, want)
	}
	undo()
	if got := givenNow(); got != before {
		t.Errorf("after it there is %+v; want %+v", got, before)
	}
}

func TestWhatTheEnvironmentSaysOfTheRuntimeHolds(t *testing.T) {
	unsetenv(t, "GOGC")
	t.Setenv("GOMAXPROCS", "3")
	t.Setenv("GOMEMLIMIT", "1GiB") // and so how much garbage may lie
	before := givenNow()
	defer tuneRuntime(1000)()
	if got := givenNow(); got != before {
		t.Errorf("a daemon works with %+v; want %+v", got, before)
	}
}

// unsetenv has the environment say nothing of some names until the test is over.
func unsetenv(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "") // which is taken back by what t does
	}
}

// The tasks that wait must not leave too little memory for the rest: the garbage
// collector would work all the time.
func TestAFullQueueLeavesTheMemoryOfAnEmptyOne(t *testing.T) {
	unsetenv(t, "GOGC", "GOMEMLIMIT")
	for _, queue := range []int{0, 100_000, 1_000_000, 10_000_000} {
		undo := tuneRuntime(queue)
		if room := givenNow().limit - 64*int64(queue); room < 96<<20 {
			t.Errorf("a queue of %d tasks leaves %d bytes for the rest; want 96 MiB", queue, room)
		}
		undo()
	}
}
