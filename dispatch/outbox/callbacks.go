package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"

	"mailboxd/dispatch/store"
	"mailboxd/internal/running/runner"
)

// maxAttempts limits the attempts at callbacks that fail because of the file in their place. It
// lasts for about ten minutes.
const maxAttempts = 8

// Callbacks knows which callbacks of a task were made while others failed, so that a retry
// repeats none. After a restart a callback may be made twice.
type Callbacks struct {
	Mu   sync.Mutex // guards open
	open map[int64]*attempts
}

// attempts is the progress of one task's callbacks.
type attempts struct {
	made      map[string]bool
	failed    int  // attempts at which a callback failed
	lasting   int  // those without a temporary error
	abandoned bool // no retry before resume
}

func newCallbacks() *Callbacks { return &Callbacks{open: map[int64]*attempts{}} }

// make makes the callbacks that were not made yet; nil ones were not asked for. One caller at a
// time handles a task.
func (c *Callbacks) make(seq int64, all map[string]func() error) error {
	a := c.attempts(seq)
	var failed error
	passing, never := false, false
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == nil || a.made[name] {
			continue
		}
		if err := all[name](); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			passing = passing || passes(err)
			never = never || errors.Is(err, syscall.ENAMETOOLONG)
			continue
		}
		a.made[name] = true
	}
	if failed == nil {
		return nil
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	a.failed++
	switch {
	case passing:
		a.lasting = min(a.lasting, maxAttempts-1)
	case never:
		a.lasting = maxAttempts
	default:
		a.lasting++
	}
	return failed
}

// passes reports whether a failed callback may succeed without a change of the file in its
// place: the machine has trouble, or the mailbox is gone for now.
func passes(err error) bool {
	_, machine := store.MachineHint(err)
	return machine || runner.Passing(err) || errors.Is(err, fs.ErrNotExist)
}

// exhausted reports whether the attempts at the callbacks of a task are used up.
func (c *Callbacks) exhausted(seq int64) bool {
	return c.progress(seq).lasting >= maxAttempts
}

// abandon stops the retries of a task's callbacks until resume.
func (c *Callbacks) abandon(seq int64) {
	a := c.attempts(seq)
	c.Mu.Lock()
	defer c.Mu.Unlock()
	a.abandoned = true
}

func (c *Callbacks) isAbandoned(seq int64) bool { return c.progress(seq).abandoned }

// resume begins a new round of attempts at the callbacks of a task, abandoned or not.
func (c *Callbacks) resume(seq int64) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if a := c.open[seq]; a != nil {
		a.failed, a.lasting, a.abandoned = 0, 0, false
	}
}

// forget removes a task whose callbacks are recorded in the ledger. Before that, a retry must
// not repeat one.
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
func (c *Callbacks) failures(seq int64) int { return c.progress(seq).failed }

// progress returns the progress of a task's callbacks; zero when none was tried.
func (c *Callbacks) progress(seq int64) attempts {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if a := c.open[seq]; a != nil {
		return *a
	}
	return attempts{}
}
