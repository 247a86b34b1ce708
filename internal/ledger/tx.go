package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"mailboxd/envelope"
)

// A Tx is the writing side of the ledger, inside one Update. It must not be
// kept when the function it was handed to returns.
type Tx struct {
	write *statements
	rows  *rows // that wait to be written together
}

// background is the context of what a group writes: that of no caller ends it.
var background = context.Background()

func (tx *Tx) exec(query string, args ...any) (sql.Result, error) {
	return tx.write.exec(background, query, args...) // the group's, which no caller's context ends
}

// change runs a statement for one row and reports whether there was one.
func (tx *Tx) change(query string, args ...any) (bool, error) {
	if err := tx.rows.write(); err != nil {
		return false, err
	}
	return tx.alter(nil, query, args...)
}

// alter is change for a statement that can tell only of one batch whether it waits.
func (tx *Tx) alter(b *batch, query string, args ...any) (bool, error) {
	if b != nil {
		if err := tx.rows.flush(b); err != nil {
			return false, err
		}
	}
	result, err := tx.write.run(query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Latest returns the highest revision of an id, and whether there is one.
func (tx *Tx) Latest(id envelope.ID) (Task, bool, error) {
	t, ok, err := first(background, tx.write, scanTask,
		"SELECT "+taskColumns+" FROM tasks WHERE id = ? ORDER BY revision DESC LIMIT 1", string(id))
	if err != nil {
		return Task{}, false, fmt.Errorf("look up task %s: %w", id, err)
	}
	return t, ok, nil
}

// Raw is Reader.Raw of this transaction, which it sees whole.
func (tx *Tx) Raw(seq int64) ([]byte, error) {
	raw, ok, err := first(background, tx.write, one[[]byte], "SELECT body FROM requests WHERE task = ?", seq)
	return known(raw, ok, err, "read request of task", seq)
}

// Latests is Latest for many ids at once; those that are not known are left out.
func (tx *Tx) Latests(ids []envelope.ID) (map[envelope.ID]Task, error) {
	found := map[envelope.ID]Task{}
	for _, n := range steps {
		for ; len(ids) >= n; ids = ids[n:] {
			args := make([]any, n)
			for i, id := range ids[:n] {
				args[i] = string(id)
			}
			tasks, err := all(background, tx.write, scanTask, latestsQueries[n], args...)
			if err != nil {
				return nil, fmt.Errorf("look up %d tasks: %w", n, err)
			}
			for _, t := range tasks {
				found[t.ID] = t
			}
		}
	}
	return found, nil
}

// latestsQueries are Latest for each number of ids in steps.
var latestsQueries = func() map[int]string {
	queries := map[int]string{}
	for _, n := range steps {
		queries[n] = "SELECT " + taskColumns + " FROM tasks WHERE latest = 1 AND id IN (" + strings.Repeat("?, ", n-1) + "?)"
	}
	return queries
}()

// Task returns the revision with this Seq, and whether there is one.
func (tx *Tx) Task(seq int64) (Task, bool, error) {
	t, ok, err := first(background, tx.write, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE seq = ?", seq)
	if err != nil {
		return Task{}, false, fmt.Errorf("look up task %d: %w", seq, err)
	}
	return t, ok, nil
}

// Result returns the bytes of the result of the revision with this Seq, which
// nobody may have been shown yet; nil when there is none.
func (tx *Tx) Result(seq int64) ([]byte, error) {
	result, _, err := first(context.Background(), tx.write, one[[]byte], "SELECT body FROM results WHERE task = ?", seq)
	if err != nil {
		return nil, fmt.Errorf("read result of task %d: %w", seq, err)
	}
	return result, nil
}

const openOfQuery = "SELECT count(*) FROM tasks WHERE state <> 'done' AND state <> 'waiting' AND state <> 'review' AND requester = ?"

// OpenOf counts the tasks of a requester that are held, queued or running. It
// reads all tasks that are not over.
func (tx *Tx) OpenOf(requester string) (int, error) {
	n, _, err := first(context.Background(), tx.write, one[int],
		openOfQuery, requester)
	if err != nil {
		return 0, fmt.Errorf("count open tasks of %s: %w", requester, err)
	}
	return n, nil
}

// Known returns the highest revision of an id that has this content, and
// whether there is one (AINL-55).
func (tx *Tx) Known(id envelope.ID, hash string) (revision int, ok bool, err error) {
	revision, ok, err = first(background, tx.write, one[int],
		"SELECT revision FROM tasks WHERE id = ? AND hash = ? ORDER BY revision DESC LIMIT 1", string(id), hash)
	if err != nil {
		return 0, false, fmt.Errorf("look up task %s: %w", id, err)
	}
	return revision, ok, nil
}

// Executed reports whether an agent may have begun a revision of the id: a run
// of it has a start, a process or nobody who knows how it ended, or is going
// on. An intent that came to nothing is no execution.
func (tx *Tx) Executed(id envelope.ID) (bool, error) {
	_, ok, err := first(background, tx.write, one[int],
		`SELECT 1 FROM tasks LEFT JOIN runs ON runs.task = tasks.seq WHERE tasks.id = ? AND
		(tasks.state = 'running' OR runs.started IS NOT NULL OR runs.pid <> 0 OR runs.cause = 'lost') LIMIT 1`, string(id))
	if err != nil {
		return false, fmt.Errorf("look up task %s: %w", id, err)
	}
	return ok, nil
}

// Add remembers a new revision with the bytes it came as, and returns its
// Seq. Seq, Latest and ResultSum of t are ignored. A revision that is not
// higher than the others of its id is an error, of Add or of its Update.
func (tx *Tx) Add(t Task, raw []byte) (seq int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("add task %s: %w", t.ID, err)
		}
	}()
	if t.Revision > 1 {
		if _, err := tx.exec("UPDATE tasks SET latest = 0 WHERE id = ? AND revision < ? AND latest = 1", string(t.ID), t.Revision); err != nil {
			return 0, err
		}
	}
	if seq, err = tx.nextTask(); err != nil {
		return 0, err
	}
	if raw == nil {
		raw = []byte{} // a column for bytes, not for NULL
	}
	err = tx.rows.add(&tx.rows.tasks, seq,
		string(t.ID), t.Revision, true, t.Hash, string(t.Dialect), string(t.State), t.Attempt, joinReasons(t.Reasons), micros(t.Until), t.Agent,
		t.Requester, t.Type, micros(t.Deadline), micros(t.Received), micros(t.Finished), t.File, t.Offset,
		string(t.Status), string(t.Kind), "", t.Put, t.Delivered, t.Replaces, t.Parent, t.Depth)
	if err == nil {
		err = tx.rows.add(&tx.rows.requests, seq, raw)
	}
	return seq, err
}

// nextTask gives a Seq that no task ever had. SQLite would say only afterwards
// which one it gave.
func (tx *Tx) nextTask() (int64, error) {
	if tx.rows.lastTask == 0 {
		last, _, err := first(background, tx.write, one[int64], "SELECT seq FROM sqlite_sequence WHERE name = 'tasks'")
		if err != nil {
			return 0, err
		}
		tx.rows.lastTask = last
	}
	tx.rows.lastTask++
	return tx.rows.lastTask, nil
}
