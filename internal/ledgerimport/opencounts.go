package ledgerimport

import "fmt"

// openCounts has the number of tasks that are not Done of each requester who has any.
type openCounts map[string]int

func (c openCounts) add(requester string, n int) {
	if c[requester] += n; c[requester] == 0 {
		delete(c, requester)
	}
}

// merge adds changes. Nothing is added to counts that are nil.
func (c openCounts) merge(changes openCounts) {
	if c == nil {
		return
	}
	for requester, n := range changes {
		c.add(requester, n)
	}
}

const openCountsQuery = "SELECT requester, count(*) FROM tasks WHERE state <> 'done' GROUP BY requester"

// OpenOf counts the tasks of a requester that are not Done. The first call after Open
// reads all tasks that are not Done.
func (tx *Tx) OpenOf(requester string) (int, error) {
	l := tx.ledger
	if l.counts == nil {
		durable, err := tx.countOpen()
		if err != nil {
			return 0, fmt.Errorf("count open tasks: %w", err)
		}
		l.counts = durable
	}
	return l.counts[requester] + tx.counts[requester], nil
}

// countOpen counts what the tables have, without the changes of the group.
func (tx *Tx) countOpen() (openCounts, error) {
	type count struct {
		requester string
		tasks     int
	}
	scan := func(r row) (c count, err error) {
		err = r.Scan(&c.requester, &c.tasks)
		return c, err
	}
	list, err := all(background, tx.write, scan, openCountsQuery)
	counts := openCounts{}
	for _, c := range list {
		counts[c.requester] = c.tasks
	}
	for requester, n := range tx.counts {
		counts.add(requester, -n)
	}
	return counts, err
}
