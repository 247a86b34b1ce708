package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"mailboxd/internal/runner"
)

// HasDir reports whether runs of the agent have directories: all but those of
// workers and inboxes do, also those of an agent that is no longer there.
func (a *Agents) HasDir(id string) bool {
	g, ok := a.byID[id]
	return !ok || g.workers == nil && g.binding.Inbox == nil
}

// Keep takes over the workers of earlier agents whose binding has not changed,
// so that a warm one stays warm. It comes before the first Run; earlier is to
// be closed then, which ends the others.
func (a *Agents) Keep(earlier *Agents) {
	for id, g := range a.byID {
		was, ok := earlier.byID[id]
		if ok && was.workers != nil && sameWorkers(g, was) {
			g.workers = was.workers
			was.kept = true
		}
	}
}

func sameWorkers(a, b *Agent) bool {
	x, y := a.binding, b.binding
	return reflect.DeepEqual(x.Worker, y.Worker) && reflect.DeepEqual(a.environ, b.environ) &&
		x.Cwd == y.Cwd && x.Backoff == y.Backoff && x.Grace == y.Grace && a.opts.WorkerDir == b.opts.WorkerDir
}

// Close ends the workers that no others keep, once they have answered what they
// have; see worker.Pool.Close. A run that comes later is void.
func (a *Agents) Close(grace time.Duration) {
	var closing sync.WaitGroup
	for _, g := range a.byID {
		if g.workers != nil && !g.kept {
			closing.Go(func() { g.workers.Close(grace) })
		}
	}
	closing.Wait()
}

// SweepWorkers ends what workers of a daemon that was killed left running, and
// removes their directories. It comes before any agent is made with that
// directory, which it makes if need be.
func SweepWorkers(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("sweep workers: %w", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweep workers: %w", err)
	}
	for _, entry := range left {
		path := filepath.Join(dir, entry.Name())
		_, sweepErr := runner.Sweep(path, 0)
		err = errors.Join(err, sweepErr, os.RemoveAll(path))
	}
	if err != nil {
		return fmt.Errorf("sweep workers: %w", err)
	}
	return nil
}
