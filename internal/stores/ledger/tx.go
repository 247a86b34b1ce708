package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

// A Tx is the writing side of the ledger, inside one Update. It must not be
// kept when the function it was handed to returns. After a statement that failed, every
// method fails, and so does the Update.
type Tx struct {
	write *statements
	rows
	open   map[string]int // of requesters, as they were before this transaction
	counts openChanges    // since then
	events []task.Event   // that are to be added before they are read, and before the commit
	seals  seal.Writer
}

// rows are tasks and runs that transactions read or changed, as they are now. The next transaction gets
// them, unless this one fails, since no other connection changes rows.
type rows struct {
	tasks map[int64]task.Task
	runs  map[task.RunName]task.Run
}

func noRows() rows { return rows{map[int64]task.Task{}, map[task.RunName]task.Run{}} }

// keptRows is how many rows the next transaction gets at most.
const keptRows = 1024

// background is the context of what a group writes: that of no caller ends it.
var background = context.Background()

func (tx *Tx) exec(query string, args ...any) (sql.Result, error) {
	return tx.write.exec(query, args...)
}

// change runs a statement for one row and reports whether there was one.
func (tx *Tx) change(query string, args ...any) (bool, error) {
	result, err := tx.exec(query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// changed runs a statement for one row and returns what scan makes of it.
func changed[T any](tx *Tx, scan func(row) (T, error), query string, args ...any) (T, bool, error) {
	tx.write.wrote = true
	return first(background, tx.write, scan, query, args...)
}

// Latest returns the highest revision of an id, and whether there is one.
func (tx *Tx) Latest(id envelope.ID) (t task.Task, ok bool, err error) {
	defer wrap(&err, "look up task %s", id)
	t, ok, err = first(background, tx.write, scanTask,
		"SELECT "+taskColumns+" FROM tasks WHERE id = ? ORDER BY revision DESC LIMIT 1", string(id))
	if ok {
		tx.tasks[t.Seq] = t
	}
	return t, ok, err
}

// Raw is Reader.Raw of this transaction, which it sees whole.
func (tx *Tx) Raw(seq int64) ([]byte, error) {
	raw, ok, err := first(background, tx.write, one[[]byte], "SELECT body FROM requests WHERE task = ?", seq)
	return known(raw, ok, err, "read request of task", seq)
}

// Latests is Latest for many ids at once; those that are not known are left out.
//
// It asks first whether an id is known: mostly it is not, and a query of all columns for none
// takes twice as long.
func (tx *Tx) Latests(ids []envelope.ID) (found map[envelope.ID]task.Task, err error) {
	defer wrap(&err, "look up %d tasks", len(ids))
	found = map[envelope.ID]task.Task{}
	return found, inSteps(ids, func(some []any) error {
		there, err := all(background, tx.write, one[envelope.ID], thereQueries[len(some)], some...)
		if len(there) == 0 || err != nil {
			return err
		}
		tasks, err := all(background, tx.write, scanTask, latestsQueries[len(some)], some...)
		for _, t := range tasks {
			found[t.ID], tx.tasks[t.Seq] = t, t
		}
		return err
	})
}

var (
	thereQueries   = queriesOfLatest("id")
	latestsQueries = queriesOfLatest(taskColumns)
)

// queriesOfLatest ask for as many ids as each of steps says.
func queriesOfLatest(columns string) map[int]string {
	queries := map[int]string{}
	for _, n := range steps {
		queries[n] = "SELECT " + columns + " FROM tasks WHERE latest = 1 AND id IN (" + strings.Repeat("?, ", n-1) + "?)"
	}
	return queries
}

// Task returns the revision with this Seq, and whether there is one.
func (tx *Tx) Task(seq int64) (t task.Task, ok bool, err error) {
	if t, ok := tx.tasks[seq]; ok {
		return t, true, nil
	}
	defer wrap(&err, "look up task %d", seq)
	t, ok, err = first(background, tx.write, scanTask, taskQuery, seq)
	if ok {
		tx.tasks[seq] = t
	}
	return t, ok, err
}

// OpenRevisions returns the revisions of an id that are not Done, the first one first.
func (tx *Tx) OpenRevisions(id envelope.ID) ([]task.Task, error) {
	rows, err := all(background, tx.write, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE id = ? AND state <> 'done' ORDER BY revision", string(id))
	if err != nil {
		return nil, fmt.Errorf("list open revisions of %s: %w", id, err)
	}
	return rows, nil
}

// Result returns the bytes of the result of the revision with this Seq, which
// may be withheld; nil when there is none.
func (tx *Tx) Result(seq int64) ([]byte, error) {
	result, _, err := first(context.Background(), tx.write, one[[]byte], "SELECT body FROM results WHERE task = ?", seq)
	if err != nil {
		return nil, fmt.Errorf("read result of task %d: %w", seq, err)
	}
	return result, nil
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
// of it has a start, a process or an unknown end, or is going on. An intent
// without a start is no execution.
func (tx *Tx) Executed(id envelope.ID) (bool, error) {
	_, ok, err := first(background, tx.write, one[int],
		`SELECT 1 FROM tasks LEFT JOIN runs ON runs.task = tasks.seq WHERE tasks.id = ? AND
		(tasks.state = 'running' OR runs.started IS NOT NULL OR runs.pid <> 0 OR runs.cause = 'lost') LIMIT 1`, string(id))
	if err != nil {
		return false, fmt.Errorf("look up task %s: %w", id, err)
	}
	return ok, nil
}

// Add stores a new revision with the bytes it came as and what it waits for, and returns its
// Seq. Seq, Latest and ResultSum of t are ignored. A revision that is not
// higher than the others of its id is an error, of Add or of its Update.
func (tx *Tx) Add(t task.Task, raw []byte, waits ...task.Wait) (seq int64, err error) {
	defer wrap(&err, "add task %s", t.ID)
	if t.Revision > 1 {
		if err := tx.supersede(t); err != nil {
			return 0, err
		}
	}
	t.Latest, t.ResultSum = true, ""
	t.Until, t.Due, t.Deadline, t.Received, t.Finished = exact(t.Until), exact(t.Due), exact(t.Deadline), exact(t.Received), exact(t.Finished)
	if seq, err = tx.insertTask(t, raw); err != nil {
		return 0, err
	}
	t.Seq = seq
	tx.tasks[seq] = t
	tx.counts.add(t.Requester, t.State, 1)
	return seq, setWaits(tx, seq, "", nil, task.Change{Waits: waits})
}

// supersede has the revisions before t no longer be the latest of their id.
func (tx *Tx) supersede(t task.Task) error {
	there, found, err := tx.Latest(t.ID)
	if err != nil || !found {
		return err
	}
	if there.Revision >= t.Revision {
		return tx.write.note(fmt.Errorf("revision %d of it is there", there.Revision))
	}
	delete(tx.tasks, there.Seq)
	_, err = tx.exec("UPDATE tasks SET latest = 0 WHERE id = ? AND latest = 1", string(t.ID))
	return err
}
