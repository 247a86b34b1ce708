package ledgerimport

import (
	"context"
	"fmt"

	"mailboxd/envelope"
)

// CountChildren counts the revisions that runs of a task have asked for.
func (tx *Tx) CountChildren(task int64) (int, error) {
	n, _, err := first(context.Background(), tx.write, one[int], "SELECT count(*) FROM tasks WHERE parent = ? AND parent <> 0", task)
	if err != nil {
		return 0, fmt.Errorf("count children of task %d: %w", task, err)
	}
	return n, nil
}

// ChildrenBefore counts those of them that were asked for before the revision
// with this Seq.
func (r *Reader) ChildrenBefore(ctx context.Context, task, seq int64) (int, error) {
	n, _, err := first(ctx, r.read, one[int], "SELECT count(*) FROM tasks WHERE parent = ? AND parent <> 0 AND seq < ?", task, seq)
	if err != nil {
		return 0, fmt.Errorf("count children of task %d: %w", task, err)
	}
	return n, nil
}

// CountChildren returns the ids of the tasks that runs of a task have asked for, in
// the order in which they came.
func (r *Reader) Children(ctx context.Context, task int64) ([]envelope.ID, error) {
	ids, err := all(ctx, r.read, one[envelope.ID], "SELECT id FROM tasks WHERE parent = ? AND parent <> 0 GROUP BY id ORDER BY min(seq)", task)
	if err != nil {
		return nil, fmt.Errorf("list children of task %d: %w", task, err)
	}
	return ids, nil
}
