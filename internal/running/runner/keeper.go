package runner

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper is the parent and subreaper of runs, so that they outlive the daemon. It exits
// when it has no client and no run.
type keeper struct {
	build    string
	isDaemon func(pid int) bool // whether a process is the mailbox's daemon; nil: not checked
	table    *processTable
	leave    context.CancelFunc
	work     sync.WaitGroup // of the clients
	hosts    hostPool

	mu        sync.Mutex // guards the fields below
	runs      map[string]*hostedRun
	unwritten map[string]*hostedRun // runs whose end isn't written while a client knows it
	clients   map[*connection]bool  // connected ones
	reaping   bool                  // the reap timer is set
	reaper    *time.Timer
}

// keeperComm is the name of a keeper in ps and top, which show at most 15 bytes. It would
// be exe, since a keeper is started as /proc/self/exe.
const keeperComm = "mailboxd-keeper"

// firstClientTimeout is how long a new keeper waits for its first client.
const firstClientTimeout = 10 * time.Second

// Keep is the main function of a keeper. It serves the socket from Keepers, and returns
// when no client is connected and nothing runs. When ctx ends, it first ends its runs. Keep
// makes the process a subreaper that reaps all children. Signals that the caller ignores
// stay ignored in the runs. Keep accepts requests only from a process of the same user that
// isn't part of a run and for which serves, unless nil, returns true.
func Keep(ctx context.Context, dir, build string, serves func(pid int) bool) error {
	listener, err := inherit()
	if err != nil {
		return fmt.Errorf("keep runs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep runs: become subreaper: %w", err)
	}
	_ = os.WriteFile("/proc/self/comm", []byte(keeperComm), 0) // only for people: nothing finds a keeper by this name
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("keep runs: %w", err)
	}
	defer root.Close()
	stay, leave := context.WithCancel(ctx)
	k := &keeper{build: build, isDaemon: serves, table: newProcessTable(), leave: leave}
	k.runs, k.unwritten, k.clients = map[string]*hostedRun{}, map[string]*hostedRun{}, map[*connection]bool{}
	k.hosts.jobs, k.hosts.closed = make(chan func()), stay.Done()
	defer k.table.close()
	alone := time.AfterFunc(firstClientTimeout, func() { k.update(func() {}) })
	defer alone.Stop()
	k.reaper = time.AfterFunc(reapInterval, k.reap)
	defer k.reaper.Stop()
	stop := context.AfterFunc(stay, func() { listener.Close() })
	k.accept(ctx, stay, listener)
	stop()
	k.work.Wait()
	k.hosts.work.Wait()
	keeperPaths{root, build}.clear()
	return nil
}

// inherit returns the inherited descriptors: the listening socket, and the lock, which is
// held while it is open.
func inherit() (net.Listener, error) {
	// No run inherits them, nor a descriptor that the daemon got from its own parent.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil { // an older kernel
		for fd := range inheritedFiles {
			unix.CloseOnExec(fd + 3)
		}
	}
	f := os.NewFile(3, "socket")
	defer f.Close()
	return net.FileListener(f)
}

// inheritedFiles is the number of inherited descriptors, from 3 on.
const inheritedFiles = 2

// accept accepts clients until the keeper exits.
func (k *keeper) accept(ctx, stay context.Context, listener net.Listener) {
	for stay.Err() == nil {
		conn, err := listener.Accept()
		if err != nil { // such as too few descriptors: waiting clients are accepted later
			pause(stay, 100*time.Millisecond)
			continue
		}
		l := newConnection(conn)
		k.update(func() { k.clients[l] = true })
		k.work.Go(func() {
			defer k.removeClient(ctx, l)
			defer conn.Close()
			defer context.AfterFunc(stay, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
			k.serve(ctx, l)
		})
	}
}

// update changes the keeper's state, and makes it exit if nothing is left.
func (k *keeper) update(books func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	books()
	if len(k.clients) == 0 && len(k.runs) == 0 {
		k.leave()
	}
	if len(k.runs) > 0 && !k.reaping {
		k.reaping = true
		k.reaper.Reset(reapInterval)
	}
}

// reapInterval is the time between two reaps of orphans while runs go on. Waiting for
// SIGCHLD instead would cost every run a signal.
const reapInterval = 50 * time.Millisecond

// reap reaps dead orphans and repeats while runs go on. The keeper's own parent reaps the
// rest.
func (k *keeper) reap() {
	k.table.reapOrphans()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reaping = len(k.runs) > 0; k.reaping {
		k.reaper.Reset(reapInterval)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
