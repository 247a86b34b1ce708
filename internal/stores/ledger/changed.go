package ledger

import (
	"context"
	"fmt"
)

// Changed returns a channel that is closed once another group is committed.
// A caller that follows the ledger asks for it first, then reads, then waits: what is
// committed in between is either read or announced. No commit waits for such a caller.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// announce wakes the callers that wait for a commit.
func (l *Ledger) announce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// LastEvent returns the Seq of the newest event, which may have been removed; 0
// when there was none.
func (r *Reader) LastEvent(ctx context.Context) (int64, error) {
	seq, _, err := first(ctx, r.read, one[int64], "SELECT seq FROM sqlite_sequence WHERE name = 'events'")
	if err != nil {
		return 0, fmt.Errorf("look up the last event: %w", err)
	}
	return seq, nil
}
