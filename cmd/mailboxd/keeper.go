package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"

	"mailboxd/internal/running/runner"
	"mailboxd/mailbox"
)

// runKeeper runs a keeper. SIGTERM ends its agents, too, since it comes from a user or a
// shutdown.
func runKeeper(dir, build string) error {
	limitRuntime()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // not ignored: the agents would ignore it too
	return runner.Keep(ctx, dir, build, func(pid int) bool { return servesState(filepath.Dir(dir), pid) })
}

// servesState reports whether a process holds the lock of a state directory, as far as
// that is visible here.
func servesState(state string, pid int) bool {
	holder, served, err := mailbox.ServedBy(state)
	return err != nil || served && (holder == 0 || holder == pid)
}

// limitRuntime leaves the processors to the agents: a second thread mostly looks for
// work, and a collection spins while a process starts. Half of the threads and 4 MB more
// made short runs a sixth faster.
func limitRuntime() {
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	debug.SetGCPercent(200)
}
