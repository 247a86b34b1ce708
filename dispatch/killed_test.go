package dispatch_test

import (
	"slices"
	"sync"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
)

// A death says after which transaction no further step is taken, as if the daemon had been killed. The zero
// value lets it live.
type death struct {
	mu   sync.Mutex // guards left and lost
	left int        // transactions until then, that one included; 0: it lives
	lost bool       // it has come
}

// after has the n-th transaction from now be the last one with an effect.
func (d *death) after(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

func (d *death) undo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.lost = 0, false
}

// loses counts a transaction, and reports whether its steps are lost. One that begins a run isn't counted:
// what becomes of a run that a killed daemon leaves is tried elsewhere.
func (d *death) loses(c store.Consequences) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	begins := slices.ContainsFunc(c.Moves, func(m store.Move) bool { return m.After.State == task.Running })
	if !begins && d.left > 0 {
		d.left--
		d.lost = d.lost || d.left == 0
	}
	return d.lost
}

// came reports whether it has come.
func (d *death) came() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}
