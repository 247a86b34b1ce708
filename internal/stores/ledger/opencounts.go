package ledger

import (
	"context"
	"fmt"

	"mailboxd/internal/decisions/task"
)

// openChanges are changes of the numbers of tasks that are not Done, by requester and state. The
// table open_tasks has these numbers, kept in the transactions that change them.
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

// OpenOf counts the tasks of a requester that are not Done.
func (tx *Tx) OpenOf(requester string) (int, error) {
	before, known := tx.open[requester]
	if !known {
		n, _, err := first(background, tx.write, one[int], "SELECT coalesce(sum(tasks), 0) FROM open_tasks WHERE requester = ?", requester)
		if err != nil {
			return 0, fmt.Errorf("count open tasks of %s: %w", requester, err)
		}
		before, tx.open[requester] = n, n
	}
	return before + tx.counts.of(requester), nil
}

// saveCounts adds what the transaction has changed to the numbers of open tasks.
func (tx *Tx) saveCounts() error {
	for _, c := range tx.counts {
		if c.tasks == 0 {
			continue
		}
		_, err := tx.exec("INSERT INTO open_tasks (requester, state, tasks) VALUES (?, ?, ?) "+
			"ON CONFLICT (requester, state) DO UPDATE SET tasks = tasks + excluded.tasks", c.requester, string(c.state), c.tasks)
		if err != nil {
			return fmt.Errorf("count open tasks: %w", err)
		}
	}
	return nil
}

// CountOpen returns how many revisions are in each state but Done. A state that
// none is in is not there.
func (r *Reader) CountOpen(ctx context.Context) (map[task.State]int, error) {
	scan := func(r row) (c openChange, err error) { return c, r.Scan(&c.state, &c.tasks) }
	counts, err := all(ctx, r.read, scan, "SELECT state, sum(tasks) FROM open_tasks GROUP BY state HAVING sum(tasks) <> 0")
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	open := map[task.State]int{}
	for _, c := range counts {
		open[c.state] = c.tasks
	}
	return open, nil
}
