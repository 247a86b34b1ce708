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
	"mailboxd/internal/runner"
)

// mostAttempts is how often callbacks are tried that fail because of what is in their
// place: for about ten minutes.
const mostAttempts = 8

// Callbacks remembers which callbacks of a task were made while others failed, so
// that trying again repeats none. After a restart one may be made twice.
type Callbacks struct {
	Mu   sync.Mutex // guards open
	open map[int64]*attempts
}

// attempts is what became of one task's callbacks so far.
type attempts struct {
	made      map[string]bool
	failed    int  // attempts at which a callback failed
	lasting   int  // those at which no failure was one that passes
	abandoned bool // nobody tries again before resume
}

func newCalls() *Callbacks { return &Callbacks{open: map[int64]*attempts{}} }

// make makes the callbacks that were not made yet; nil ones were not asked
// for. One caller at a time has a task.
func (c *Callbacks) make(seq int64, all map[string]func() error) error {
	so := c.attempts(seq)
	var failed error
	passing, never := false, false
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == nil || so.made[name] {
			continue
		}
		if err := all[name](); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			passing = passing || passes(err)
			never = never || errors.Is(err, syscall.ENAMETOOLONG)
			continue
		}
		so.made[name] = true
	}
	if failed == nil {
		return nil
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	so.failed++
	switch {
	case passing:
		so.lasting = min(so.lasting, mostAttempts-1)
	case never:
		so.lasting = mostAttempts
	default:
		so.lasting++
	}
	return failed
}

// passes reports whether a callback that failed may succeed although nobody changes what
// is in its place: the machine has trouble, or the mailbox is gone for now.
func passes(err error) bool {
	_, machine := store.MachineHint(err)
	return machine || runner.Passing(err) || errors.Is(err, fs.ErrNotExist)
}

// exhausted reports whether callbacks of the task have failed as often as they are tried.
func (c *Callbacks) exhausted(seq int64) bool {
	return c.look(seq).lasting >= mostAttempts
}

// abandon has nobody try the callbacks of the task again before resume.
func (c *Callbacks) abandon(seq int64) {
	so := c.attempts(seq)
	c.Mu.Lock()
	defer c.Mu.Unlock()
	so.abandoned = true
}

func (c *Callbacks) isAbandoned(seq int64) bool { return c.look(seq).abandoned }

// resume has abandoned callbacks tried again, as often as before.
func (c *Callbacks) resume(seq int64) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if so := c.open[seq]; so != nil && so.abandoned {
		so.failed, so.lasting, so.abandoned = 0, 0, false
	}
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
func (c *Callbacks) failures(seq int64) int { return c.look(seq).failed }

// look returns what became of a task's callbacks; zero when none was tried.
func (c *Callbacks) look(seq int64) attempts {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if so := c.open[seq]; so != nil {
		return *so
	}
	return attempts{}
}
