package ledger

import (
	"context"
	"fmt"

	"mailboxd/internal/task"
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

// CountOpen returns how many revisions are in each state but Done. A state that
// none is in is not there.
//
// What is queued may be a million, and is what is left when the others are
// counted: that takes a fifth of what grouping them takes.
func (r *Reader) CountOpen(ctx context.Context) (map[task.State]int, error) {
	type count struct {
		state task.State
		n     int
	}
	counts, err := all(ctx, r.read, func(row row) (c count, err error) {
		err = row.Scan(&c.state, &c.n)
		return c, err
	}, countOpenQuery)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	open := map[task.State]int{}
	for _, c := range counts {
		open[c.state] += c.n
		if c.state != task.Queued {
			open[task.Queued] -= c.n
		}
	}
	if open[task.Queued] == 0 {
		delete(open, task.Queued)
	}
	return open, nil
}

// countOpenQuery counts all that is open as queued, and in the same moment the
// other states.
const countOpenQuery = "SELECT 'queued', count(*) FROM tasks WHERE state <> 'done' UNION ALL " +
	"SELECT state, count(*) FROM tasks WHERE state <> 'done' AND state <> 'queued' GROUP BY state"
