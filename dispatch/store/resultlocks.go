package store

import (
	"sync"

	"mailboxd/envelope"
)

// ResultLocks gives each task id a lock, so that a result file is not put by one
// goroutine while another moves it to the history. Nobody waits for another id:
// who holds a lock may wait for a while until a mark is written down.
type ResultLocks struct {
	mu   sync.Mutex // guards what follows
	held map[envelope.ID]*name
}

// A name is the lock of one id, for as long as somebody has it or waits for it.
type name struct {
	sync.Mutex
	users int // the mu of names guards it
}

func newResultLocks() *ResultLocks { return &ResultLocks{held: map[envelope.ID]*name{}} }

// Lock waits for the lock of an id, and returns the function that unlocks it.
func (n *ResultLocks) Lock(id envelope.ID) (unlock func()) {
	n.mu.Lock()
	own := n.held[id]
	if own == nil {
		own = &name{}
		n.held[id] = own
	}
	own.users++
	n.mu.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		n.mu.Lock()
		defer n.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(n.held, id)
		}
	}
}
