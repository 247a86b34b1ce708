package ledger

import (
	"strings"
	"time"

	"mailboxd/internal/decisions/task"
)

// taskColumns are those scanTask reads.
const taskColumns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
	"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth, priority, due"

const taskQuery = "SELECT " + taskColumns + " FROM tasks WHERE seq = ?"

func scanTask(r row) (t task.Task, err error) {
	var reasons string
	err = r.Scan(&t.Seq, &t.ID, &t.Revision, &t.Latest, &t.Hash, &t.Dialect, &t.State, &t.Attempt, &reasons,
		stamp{&t.Until}, &t.Agent, &t.Requester, &t.Type, stamp{&t.Deadline}, stamp{&t.Received}, stamp{&t.Finished},
		&t.File, &t.Offset, &t.Status, &t.Kind, &t.ResultSum, &t.Put, &t.Delivered, &t.Replaces, &t.Parent, &t.Depth, &t.Priority, stamp{&t.Due})
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

const (
	taskInsert = "INSERT INTO tasks (id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
		"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth, priority, due) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	taskUpdate = "UPDATE tasks SET state = ?, attempt = ?, reasons = ?, until = ?, agent = ?, status = ?, kind = ?, finished = ?, " +
		"result_sum = ?, put = ?, delivered = ?, replaces = ?, due = ? WHERE seq = ?"
	resultInsert = "INSERT INTO results (task, body) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET body = excluded.body"
)

// insertTask adds a revision with the bytes it came as, and returns its Seq.
func (tx *Tx) insertTask(t task.Task, raw []byte) (seq int64, err error) {
	result, err := tx.exec(taskInsert, string(t.ID), t.Revision, t.Latest, t.Hash, string(t.Dialect), string(t.State), t.Attempt,
		joinReasons(t.Reasons), micros(t.Until), t.Agent, t.Requester, t.Type, micros(t.Deadline), micros(t.Received), micros(t.Finished),
		t.File, t.Offset, string(t.Status), string(t.Kind), t.ResultSum, t.Put, t.Delivered, t.Replaces, t.Parent, t.Depth, t.Priority, micros(t.Due))
	if err == nil {
		seq, err = result.LastInsertId()
	}
	if raw == nil {
		raw = []byte{} // a column for bytes, not for NULL
	}
	if err == nil {
		_, err = tx.exec("INSERT INTO requests (task, body) VALUES (?, ?)", seq, raw)
	}
	if err == nil {
		err = nameArtifacts(tx, seq, raw)
	}
	return seq, err
}

// setTask writes what a task is now.
func (tx *Tx) setTask(t task.Task) error {
	tx.tasks[t.Seq] = t
	_, err := tx.exec(taskUpdate, string(t.State), t.Attempt, joinReasons(t.Reasons), micros(t.Until), t.Agent,
		string(t.Status), string(t.Kind), micros(t.Finished), t.ResultSum, t.Put, t.Delivered, t.Replaces, micros(t.Due), t.Seq)
	return err
}

// exact is a time as the tables keep it.
func exact(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
