package ledger

import (
	"strings"

	"mailboxd/internal/task"
)

// taskColumns are those scanTask reads.
const taskColumns = plainColumns + ", priority"

// plainColumns are those of a new task without a priority.
const plainColumns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
	"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"

func scanTask(r row) (t task.Task, err error) {
	var reasons string
	err = r.Scan(&t.Seq, &t.ID, &t.Revision, &t.Latest, &t.Hash, &t.Dialect, &t.State, &t.Attempt, &reasons,
		stamp{&t.Until}, &t.Agent, &t.Requester, &t.Type, stamp{&t.Deadline}, stamp{&t.Received}, stamp{&t.Finished},
		&t.File, &t.Offset, &t.Status, &t.Kind, &t.ResultSum, &t.Put, &t.Delivered, &t.Replaces, &t.Parent, &t.Depth, &t.Priority)
	t.Reasons = splitReasons(reasons)
	return t, err
}

func joinReasons(reasons []task.Reason) string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

func splitReasons(column string) (reasons []task.Reason) {
	if column == "" {
		return nil
	}
	for word := range strings.SplitSeq(column, ",") {
		reasons = append(reasons, task.Reason(word))
	}
	return reasons
}
