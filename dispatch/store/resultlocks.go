package store

import (
	"sync"

	"mailboxd/envelope"
)

// ResultLocks gives each task id a lock. Without it, one goroutine could put a result file
// while another moves it to the history. A lock may be held while a mark is written, so no
// other id waits for it.
type ResultLocks struct {
	mu   sync.Mutex // guards the fields below
	held map[envelope.ID]*idLock
}

// An idLock is the lock of one id, as long as a goroutine has it or waits for it.
type idLock struct {
	sync.Mutex
	users int // guarded by ResultLocks.mu
}

func newResultLocks() *ResultLocks { return &ResultLocks{held: map[envelope.ID]*idLock{}} }

// Lock waits for the lock of an id, and returns the function that unlocks it.
func (l *ResultLocks) Lock(id envelope.ID) (unlock func()) {
	l.mu.Lock()
	lock := l.held[id]
	if lock == nil {
		lock = &idLock{}
		l.held[id] = lock
	}
	lock.users++
	l.mu.Unlock()
	lock.Lock()
	return func() {
		lock.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(l.held, id)
		}
	}
}
