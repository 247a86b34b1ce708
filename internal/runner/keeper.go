package runner

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper is the parent and subreaper of runs, which outlive whoever asked for
// them. It stays as long as somebody is connected or something runs.
type keeper struct {
	build  string
	serves func(pid int) bool // whether a process is the daemon of the mailbox; nil: it is not asked
	family *family
	leave  context.CancelFunc
	work   sync.WaitGroup // clients
	hosts  hosts

	mu      sync.Mutex // guards what follows
	runs    map[string]*kept
	told    map[string]*kept // over, and not written down as long as the client that knows is there
	clients map[*line]bool   // who is connected
	reaping bool             // reaper is set
	reaper  *time.Timer
}

// lonely is how long a new keeper waits for whoever started it.
const lonely = 10 * time.Second

// Keep is the whole life of a keeper: it serves the socket that Keepers handed
// over for the build, and returns when nobody is connected and nothing runs.
// When ctx ends it ends its runs first. It makes its process a subreaper of
// which it reaps all children; and whoever ignores a signal before makes the
// runs ignore it too. Orders are taken from a process of the same user alone, which is
// part of no run of the keeper, and which serves, unless nil, says to be the daemon.
func Keep(ctx context.Context, dir, build string, serves func(pid int) bool) error {
	listener, err := inherit()
	if err != nil {
		return fmt.Errorf("keep runs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep runs: become subreaper: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("keep runs: %w", err)
	}
	defer root.Close()
	stay, leave := context.WithCancel(ctx)
	k := &keeper{build: build, serves: serves, family: newFamily(), leave: leave}
	k.runs, k.told, k.clients = map[string]*kept{}, map[string]*kept{}, map[*line]bool{}
	k.hosts.jobs, k.hosts.left = make(chan func()), stay.Done()
	defer k.family.close()
	alone := time.AfterFunc(lonely, func() { k.change(func() {}) })
	defer alone.Stop()
	k.reaper = time.AfterFunc(reapInterval, k.reap)
	defer k.reaper.Stop()
	stop := context.AfterFunc(stay, func() { listener.Close() })
	k.accept(ctx, stay, listener)
	stop()
	k.work.Wait()
	k.hosts.work.Wait()
	place{root, build}.clear()
	return nil
}

// inherit takes over the descriptors that Keepers leaves to a keeper: the
// listening socket, and the lock, which is held as long as it is open.
func inherit() (net.Listener, error) {
	for fd := range heirlooms {
		unix.CloseOnExec(fd + 3) // not for the runs
	}
	f := os.NewFile(3, "socket")
	defer f.Close()
	return net.FileListener(f)
}

// heirlooms is how many descriptors a keeper inherits, from 3 on.
const heirlooms = 2

// accept takes clients until the keeper leaves.
func (k *keeper) accept(ctx, stay context.Context, listener net.Listener) {
	for stay.Err() == nil {
		conn, err := listener.Accept()
		if err != nil { // out of descriptors, perhaps: then those who wait are served when there are some
			pause(stay, 100*time.Millisecond)
			continue
		}
		l := newLine(conn)
		k.change(func() { k.clients[l] = true })
		k.work.Go(func() {
			defer k.disown(ctx, l)
			defer conn.Close()
			defer context.AfterFunc(stay, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
			k.serve(ctx, l)
		})
	}
}

// change changes the keeper's books, and leaves when that was the last of it.
func (k *keeper) change(books func()) {
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

// reapInterval is how often dead orphans are buried while something runs. To be
// told of each death instead would cost every run a signal.
const reapInterval = 50 * time.Millisecond

// reap buries dead orphans, and goes on as long as something runs. What the
// keeper leaves to its own parent is reaped there.
func (k *keeper) reap() {
	k.family.reap()
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
