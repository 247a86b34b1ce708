package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"

	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

// keeperName is the argument that makes this program a keeper: the process that
// hosts the agents' and outlives the daemon. It is ours to give, so no command
// of the command line knows it.
const keeperName = "keeper"

// runKeeper is the whole life of a keeper. Told to stop, it ends the agents: that
// comes from somebody who means it, or when the machine goes down.
func runKeeper(dir, build string) error {
	limitRuntime()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // not ignored: the agents would ignore it too
	return runner.Keep(ctx, dir, build, func(pid int) bool { return servesState(filepath.Dir(dir), pid) })
}

// servesState reports whether a process has the lock of a state directory, as far
// as that can be seen from here.
func servesState(state string, pid int) bool {
	holder, served, err := mailbox.ServedBy(state)
	return err != nil || served && (holder == 0 || holder == pid)
}

// limitRuntime leaves the processors to the agents: a second thread of ours mostly looks
// for work, and a collection waits, spinning, for each process that is just being
// started. Half of them, and 4 MB more, took a sixth off a short run.
func limitRuntime() {
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	debug.SetGCPercent(200)
}
