package gateway

import (
	"context"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

// changes wakes those that wait for tasks when the tasks have events. One stream of events serves all.
type changes struct {
	at reader.Location

	mu      sync.Mutex // guards waiting
	waiting map[envelope.ID]map[chan struct{}]bool
}

func newChanges(at reader.Location) *changes {
	return &changes{at: at, waiting: map[envelope.ID]map[chan struct{}]bool{}}
}

// await calls look at once, and again after each change of a task, until look is done or fails. While no
// daemon can be asked it waits for the next one.
func (c *changes) await(ctx context.Context, id envelope.ID, look func() (done bool, err error)) error {
	changed, stop := c.watch(id)
	defer stop()
	for {
		done, err := look()
		if done || err != nil && !isDown(err) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch returns a channel that gets something after each change of a task.
func (c *changes) watch(id envelope.ID) (changed <-chan struct{}, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := make(chan struct{}, 1)
	if c.waiting[id] == nil {
		c.waiting[id] = map[chan struct{}]bool{}
	}
	c.waiting[id][one] = true
	return one, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.waiting[id], one); len(c.waiting[id]) == 0 {
			delete(c.waiting, id)
		}
	}
}

// wake wakes those that wait for a task; "" is every task.
func (c *changes) wake(id envelope.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, all := range c.waiting {
		if id != "" && of != id {
			continue
		}
		for one := range all {
			select {
			case one <- struct{}{}:
			default: // it is awake already
			}
		}
	}
}

// serve follows the events of one daemon after another, until ctx ends.
func (c *changes) serve(ctx context.Context) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	for pause := shortest; ctx.Err() == nil; pause = min(2*pause, longest) {
		if c.follow(ctx) {
			pause = shortest
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow follows the events of the daemon until it leaves, and reports whether there was one. First it wakes
// all: what happened before the first event is in the ledger.
func (c *changes) follow(ctx context.Context) (served bool) {
	r, daemon, err := c.at.Connect(ctx)
	if err != nil {
		return false
	}
	defer r.Close()
	status, err := daemon.Brief(ctx)
	if err != nil {
		return false
	}
	c.wake("")
	_ = daemon.Follow(ctx, "", status.LastEvent, func(e client.Event) error { // it has left
		if e.Task != "" {
			c.wake(e.Task)
		}
		return nil
	})
	c.wake("") // those that wait may find the next daemon first
	return true
}
