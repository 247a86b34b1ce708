package slowtest

import (
	"flag"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// RunAtOnce sets how many parallel tests of a package run at the same time. It is for the TestMain of a
// package whose tests mostly wait: for a disk, a process or a timer. What was given as -parallel counts.
// Slow tests compute more, so it sets at most three where they were asked for, and with -race, too.
func RunAtOnce(tests int) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if withRace || Enabled() {
		tests = min(tests, 3)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
			panic(err)
		}
	}
}

// Serial has Parallel leave a test alone: one that changes or counts what its whole process has. Tests
// that are not parallel run before those that are.
func Serial(t *testing.T) {
	parallel.Store(t, true)
	t.Cleanup(func() { parallel.Delete(t) })
}

// Parallel has a test run beside others, unless it is a subtest, whose test may go on with what its
// subtests leave behind. It is for functions that prepare a test, which may be called more than once.
func Parallel(t testing.TB) {
	t.Helper()
	p, ok := t.(*testing.T)
	if !ok || strings.Contains(p.Name(), "/") {
		return
	}
	if _, already := parallel.LoadOrStore(p, true); !already {
		p.Cleanup(func() { parallel.Delete(p) })
		p.Parallel()
	}
}

// parallel has the tests for which Parallel or Serial was called.
var parallel sync.Map
