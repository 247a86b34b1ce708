package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/dirtree"
)

// HasDir reports whether an agent's runs have directories: all but those of workers and
// inboxes, including agents that are no longer configured.
func (a *Agents) HasDir(id string) bool {
	g, ok := a.byID[id]
	return !ok || g.workers == nil && g.binding.Inbox == nil
}

// Keep takes over the workers of earlier agents with an unchanged binding, so that warm
// processes stay. Call it before the first Run, and then close earlier, which ends the
// other workers.
func (a *Agents) Keep(earlier *Agents) {
	for id, g := range a.byID {
		was, ok := earlier.byID[id]
		if ok && was.workers != nil && sameWorkers(g, was) {
			g.workers, g.compared = was.workers, was.compared
			was.takenOver = true
		}
	}
}

func sameWorkers(a, b *Agent) bool {
	x, y := a.binding, b.binding
	return reflect.DeepEqual(x.Worker, y.Worker) && reflect.DeepEqual(a.environ, b.environ) && reflect.DeepEqual(x.Sandbox, y.Sandbox) &&
		x.Cwd == y.Cwd && x.Backoff == y.Backoff && x.Grace == y.Grace && a.opts.WorkerDir == b.opts.WorkerDir
}

// Close ends the workers that weren't taken over, after their open tasks; see
// worker.Pool.Close. A later run is void.
func (a *Agents) Close(grace time.Duration) {
	var closing sync.WaitGroup
	for _, g := range a.byID {
		if g.workers != nil && !g.takenOver {
			closing.Go(func() { g.workers.Close(grace) })
		}
	}
	closing.Wait()
}

// SweepWorkers ends processes left by workers of a killed daemon, and removes their
// directories. Call it before making any agent with that directory. It creates the
// directory if necessary.
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
		err = errors.Join(err, sweepErr, dirtree.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("sweep workers: %w", err)
	}
	return nil
}
