package main

import (
	"os"
	"runtime"
)

// perCPU is how many goroutines may be at work for each processor.
const perCPU = 4

// atWork lets more goroutines be at work than there are processors, unless somebody
// has set how many, and returns what undoes that. One that syncs a file counts
// as at work until Go's watcher of threads notices that it waits, so with one for
// each processor all of them wait while two results are written: 3,000 tasks of a
// static program took 3.6 s, and take 3.0 s.
func atWork() (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(perCPU * before)
	return func() { runtime.GOMAXPROCS(before) }
}
