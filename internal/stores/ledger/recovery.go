package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// What a start asks. The conditions are spelled as the partial indexes have
// them, or those would not be used.
const (
	unsettled        = "state = 'done' AND (put = 0 OR delivered = 0)"
	unsettledQuery   = "SELECT " + taskColumns + " FROM tasks WHERE " + unsettled + " AND seq > ? ORDER BY seq LIMIT ?"
	unfinishedQuery  = "SELECT " + taskColumns + " FROM tasks WHERE state <> 'done' AND seq > ? AND NOT (" + plain + ") ORDER BY seq LIMIT ?"
	queuedTasksQuery = "SELECT seq, agent, requester FROM tasks WHERE state <> 'done' AND seq > ? AND " + plain + " ORDER BY seq LIMIT ?"

	// plain is the condition of a QueuedTask. No other task becomes one later.
	plain = "state = 'queued' AND revision = 1 AND attempt = 0 AND replaces = 0 AND parent = 0 AND dialect = 'ainl' AND priority = 0"
)

// A QueuedTask is a revision that is queued and needs nothing but a slot: the
// first of its id, in AINL, of no parent, without a priority, never begun.
type QueuedTask struct {
	Seq              int64
	Agent, Requester string
}

// QueuedTasks returns up to limit QueuedTasks after afterSeq, in order of Seq. There may be a
// million, and three columns are read in a fifth of the time of a row.
func (r *Reader) QueuedTasks(ctx context.Context, afterSeq int64, limit int) ([]QueuedTask, error) {
	queued, err := all(ctx, r.read, func(r row) (t QueuedTask, err error) {
		return t, r.Scan(&t.Seq, &t.Agent, &t.Requester)
	}, queuedTasksQuery, afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("list what is queued: %w", err)
	}
	return queued, nil
}

// Unfinished returns up to limit revisions after afterSeq that are neither Done nor
// QueuedTasks, in order of Seq. It reads no task that is done.
func (r *Reader) Unfinished(ctx context.Context, afterSeq int64, limit int) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, unfinishedQuery, afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("list unfinished tasks: %w", err)
	}
	return tasks, nil
}

// Unsettled returns up to limit revisions after afterSeq that are Done and
// whose result file is not in place or whose callbacks are not done, in order
// of Seq. It reads no task that is settled.
func (r *Reader) Unsettled(ctx context.Context, afterSeq int64, limit int) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, unsettledQuery, afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("list unsettled tasks: %w", err)
	}
	return tasks, nil
}

// A Final names a task that has a result file.
type Final struct {
	Seq int64 // of its latest revision
	ID  envelope.ID
}

// Finals returns up to limit tasks after afterSeq whose latest revision is Done
// and has its result file in place, in order of Seq. It reads what is done, so
// going through all of it takes time: a second for a million tasks, where whole
// rows took eight.
func (r *Reader) Finals(ctx context.Context, afterSeq int64, limit int) ([]Final, error) {
	finals, err := all(ctx, r.read, func(r row) (f Final, err error) { return f, r.Scan(&f.Seq, &f.ID) },
		"SELECT seq, id FROM tasks WHERE seq > ? AND latest = 1 AND state = 'done' AND put = 1 AND result_sum <> '' ORDER BY seq LIMIT ?", afterSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("list final results: %w", err)
	}
	return finals, nil
}
