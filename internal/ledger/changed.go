package ledger

import (
	"context"
	"fmt"
)

// Changed returns a channel that is closed once another group is committed.
// Anyone who follows the ledger asks for it first, then reads, then waits: what is
// committed in between is either read or told. Nobody waits for who listens.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// announce tells those who wait that a group was committed.
func (l *Ledger) announce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// LastEvent returns the Seq of the newest event, which may be forgotten by now; 0
// when there was none.
func (r *Reader) LastEvent(ctx context.Context) (int64, error) {
	seq, _, err := first(ctx, r.read, one[int64], "SELECT seq FROM sqlite_sequence WHERE name = 'events'")
	if err != nil {
		return 0, fmt.Errorf("look up the last event: %w", err)
	}
	return seq, nil
}
