package outbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Callbacks remembers which callbacks of a task were made while others failed, so
// that trying again repeats none. After a restart one may be made twice.
type Callbacks struct {
	Mu   sync.Mutex // guards open
	open map[int64]*attempts
}

// attempts is what became of one task's callbacks so far.
type attempts struct {
	made   map[string]bool
	failed int
}

func newCalls() *Callbacks { return &Callbacks{open: map[int64]*attempts{}} }

// make makes the callbacks that were not made yet; nil ones were not asked
// for. One caller at a time has a task.
func (c *Callbacks) make(seq int64, all map[string]func() error) error {
	so := c.attempts(seq)
	var failed error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == nil || so.made[name] {
			continue
		}
		if err := all[name](); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		so.made[name] = true
	}
	if failed != nil {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		so.failed++
	}
	return failed
}

// forget is for a task of which the ledger knows that its callbacks were made: until
// then who tries again makes none twice.
func (c *Callbacks) forget(seq int64) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	delete(c.open, seq)
}

func (c *Callbacks) attempts(seq int64) *attempts {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.open[seq] == nil {
		c.open[seq] = &attempts{made: map[string]bool{}}
	}
	return c.open[seq]
}

// failures returns how often callbacks of the task have failed.
func (c *Callbacks) failures(seq int64) int {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if so := c.open[seq]; so != nil {
		return so.failed
	}
	return 0
}
