package ledger

import (
	"context"
	"fmt"

	"mailboxd/internal/decisions/task"
)

const (
	heardQuery = selectMessages + `WHERE task IN (SELECT ?1 UNION ALL SELECT seq FROM tasks WHERE parent = ?1 AND parent <> 0) AND task <> 0
		AND recipient = ?2 AND sender <> ?2 AND via <> 'daemon' AND seq > ?3 ORDER BY seq`
	spokenQuery = "SELECT count(*) FROM runs WHERE task = ? AND cause = ?"
)

// MessagesSince returns the messages to the agent of a task, about it or the tasks
// that belong to it, that others wrote after the message with this Seq, the
// oldest first. It leaves out the messages of mailboxd.
func (tx *Tx) MessagesSince(t task.Task, seq int64) ([]task.Message, error) {
	messages, err := all(context.Background(), tx.write, scanMessage, heardQuery, t.Seq, t.Agent, seq)
	if err != nil {
		return nil, fmt.Errorf("list what was said about task %s: %w", t.ID, err)
	}
	return messages, nil
}

// CountRuns counts the runs of a task that ended with a cause.
func (tx *Tx) CountRuns(seq int64, cause task.Cause) (int, error) {
	n, _, err := first(context.Background(), tx.write, one[int], spokenQuery, seq, string(cause))
	if err != nil {
		return 0, fmt.Errorf("count the runs of task %d: %w", seq, err)
	}
	return n, nil
}
