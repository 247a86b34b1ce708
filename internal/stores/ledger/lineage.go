package ledger

import (
	"context"
	"fmt"
	"math"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CountChildren counts the revisions that runs of a task have asked for.
func (tx *Tx) CountChildren(task int64) (int, error) {
	return countChildren(background, tx.write, task, math.MaxInt64)
}

// ChildrenBefore counts those of them that were asked for before the revision with this Seq.
func (r *Reader) ChildrenBefore(ctx context.Context, task, seq int64) (int, error) {
	return countChildren(ctx, r.read, task, seq)
}

func countChildren(ctx context.Context, s *statements, task, before int64) (int, error) {
	n, _, err := first(ctx, s, one[int], "SELECT count(*) FROM tasks WHERE parent = ? AND parent <> 0 AND seq < ?", task, before)
	if err != nil {
		return 0, fmt.Errorf("count children of task %d: %w", task, err)
	}
	return n, nil
}

// Children returns the ids of the tasks that runs of a task have asked for, in
// the order in which they came.
func (r *Reader) Children(ctx context.Context, task int64) ([]envelope.ID, error) {
	ids, err := all(ctx, r.read, one[envelope.ID], "SELECT id FROM tasks WHERE parent = ? AND parent <> 0 GROUP BY id ORDER BY min(seq)", task)
	if err != nil {
		return nil, fmt.Errorf("list children of task %d: %w", task, err)
	}
	return ids, nil
}

const openBelowQuery = "WITH RECURSIVE below (seq) AS (SELECT t.seq FROM tasks p JOIN tasks t ON t.parent = p.seq WHERE p.id = ? AND t.parent <> 0" +
	" UNION SELECT t.seq FROM tasks t JOIN below b ON t.parent = b.seq WHERE t.parent <> 0)" +
	" SELECT " + taskColumns + " FROM tasks WHERE seq IN (SELECT seq FROM below) AND state <> 'done' ORDER BY depth, seq"

// OpenBelow returns the revisions below a task that are not done: those that its runs have
// asked for, those that their runs have asked for, and so on, whether the tasks between
// are done or not. A task comes before those below it.
func (r *Reader) OpenBelow(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, openBelowQuery, string(id))
	if err != nil {
		return nil, fmt.Errorf("list open tasks below %s: %w", id, err)
	}
	return tasks, nil
}
