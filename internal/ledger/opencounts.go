package ledger

import (
	"context"
	"fmt"
	"maps"

	"mailboxd/internal/task"
)

// openCounts has the numbers of tasks that are not Done: of each requester who has any, and in
// each state that any is in. Its zero value counts nothing.
type openCounts struct {
	requesters map[string]int
	states     map[task.State]int
}

// openChanges are changes of openCounts, by requester and state.
type openChanges []openChange

type openChange struct {
	requester string
	state     task.State
	tasks     int
}

// add notes n more tasks of a requester in a state. Those that are Done do not count.
func (c *openChanges) add(requester string, state task.State, n int) {
	if state == task.Done {
		return
	}
	for i := range *c {
		if of := &(*c)[i]; of.requester == requester && of.state == state {
			of.tasks += n
			return
		}
	}
	if *c == nil {
		*c = make(openChanges, 0, 2) // a move changes two
	}
	*c = append(*c, openChange{requester, state, n})
}

// of returns by how many the tasks of a requester change.
func (c openChanges) of(requester string) (n int) {
	for _, change := range c {
		if change.requester == requester {
			n += change.tasks
		}
	}
	return n
}

// apply makes changes, times n. Nothing is added to counts that count nothing.
func (c openCounts) apply(changes openChanges, n int) {
	if c.states == nil {
		return
	}
	for _, change := range changes {
		addTo(c.requesters, change.requester, n*change.tasks)
		addTo(c.states, change.state, n*change.tasks)
	}
}

// addTo adds to one number, and forgets it at 0.
func addTo[K comparable](numbers map[K]int, key K, n int) {
	if numbers[key] += n; numbers[key] == 0 {
		delete(numbers, key)
	}
}

const openCountsQuery = "SELECT requester, state, count(*) FROM tasks WHERE state <> 'done' GROUP BY requester, state"

// OpenOf counts the tasks of a requester that are not Done. The first call after Open
// reads all tasks that are not Done.
func (tx *Tx) OpenOf(requester string) (int, error) {
	if err := tx.countOpen(); err != nil {
		return 0, err
	}
	l := tx.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.requesters[requester] + tx.counts.of(requester), nil
}

// CountOpen is [Reader.CountOpen] from memory. The first call after Open reads all tasks that are
// not Done.
func (l *Ledger) CountOpen(ctx context.Context) (map[task.State]int, error) {
	open := l.openStates()
	if open == nil && l.Update(ctx, (*Tx).countOpen) == nil {
		open = l.openStates()
	}
	if open == nil {
		return l.Reader.CountOpen(ctx) // the ledger cannot be written, or a commit just failed
	}
	return open, nil
}

// openStates returns how many tasks are in each state but Done; nil: it is not known.
func (l *Ledger) openStates() map[task.State]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts.states)
}

func (l *Ledger) countsKnown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.states != nil
}

// countOpen counts what is durable, without the changes of the group, if that is not known.
func (tx *Tx) countOpen() error {
	l := tx.ledger
	if l.countsKnown() {
		return nil
	}
	scan := func(r row) (c openChange, err error) {
		err = r.Scan(&c.requester, &c.state, &c.tasks)
		return c, err
	}
	list, err := all(background, tx.write, scan, openCountsQuery)
	if err != nil {
		return fmt.Errorf("count open tasks: %w", err)
	}
	counts := openCounts{requesters: map[string]int{}, states: map[task.State]int{}}
	counts.apply(list, 1)
	counts.apply(tx.counts, -1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = counts
	return nil
}

// countCommitted adds what a group has changed to the counts.
func (l *Ledger) countCommitted(changes openChanges) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.apply(changes, 1)
}

// forgetCounts has what is open counted again: a commit failed, and may be durable.
func (l *Ledger) forgetCounts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = openCounts{}
}
