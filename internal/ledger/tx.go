package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A Tx is the writing side of the ledger, inside one Update. It must not be
// kept when the function it was handed to returns.
//
// What it changes stays in a layer, and is made durable by the redo log, unless
// some function of its group wants what only SQL can say: then the group is a
// transaction of SQLite, to which all layers are brought first.
type Tx struct {
	ledger  *Ledger
	write   *statements          // brings what it has changed so far to the tables, and then asks them
	stage   *memtable            // what its group has changed, and the tables do not have
	below   []*memtable          // what groups before it have, the latest first
	absent  map[envelope.ID]bool // ids that are not in the ledger
	opened  bool                 // a transaction of SQLite is open, and nothing is below
	unclear error                // what kept some row from the tables: nobody knows whose that was
	wrong   error                // what the function that runs now has done wrong
	counts  openChanges          // of the counts of the ledger, by its group
}

// background is the context of what a group writes: that of no caller ends it.
var background = context.Background()

func (tx *Tx) exec(query string, args ...any) (sql.Result, error) {
	return tx.write.exec(background, query, args...) // the group's, which no caller's context ends
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

// Latest returns the highest revision of an id, and whether there is one.
func (tx *Tx) Latest(id envelope.ID) (task.Task, bool, error) {
	t, ok, err := tx.latest(id)
	if err != nil {
		return task.Task{}, false, fmt.Errorf("look up task %s: %w", id, err)
	}
	return t, ok, nil
}

// Raw is Reader.Raw of this transaction, which it sees whole.
func (tx *Tx) Raw(seq int64) ([]byte, error) {
	raw, ok, err := first(background, tx.write, one[[]byte], "SELECT body FROM requests WHERE task = ?", seq)
	return known(raw, ok, err, "read request of task", seq)
}

// Latests is Latest for many ids at once; those that are not known are left out.
func (tx *Tx) Latests(ids []envelope.ID) (map[envelope.ID]task.Task, error) {
	found := map[envelope.ID]task.Task{}
	asked := make([]any, 0, len(ids))
	for _, id := range ids {
		if t, ok := tx.changedLatest(id); ok {
			found[id] = t
		} else {
			asked = append(asked, string(id))
			tx.absent[id] = true // unless it is found
		}
	}
	for _, n := range steps {
		for ; len(asked) >= n; asked = asked[n:] {
			tasks, err := tx.latests(asked[:n])
			if err != nil {
				return nil, fmt.Errorf("look up %d tasks: %w", n, err)
			}
			for _, t := range tasks {
				found[t.ID] = t
				delete(tx.absent, t.ID)
			}
		}
	}
	return found, nil
}

// latests asks the tables for the highest revision of each id, and first whether
// there is one: mostly there is not, and to be told so of all columns takes twice
// as long.
func (tx *Tx) latests(ids []any) ([]task.Task, error) {
	there, err := all(background, tx.reads(), one[envelope.ID], thereQueries[len(ids)], ids...)
	if len(there) == 0 || err != nil {
		return nil, err
	}
	return all(background, tx.reads(), scanTask, latestsQueries[len(ids)], ids...)
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
func (tx *Tx) Task(seq int64) (task.Task, bool, error) {
	t, ok, err := tx.task(seq)
	if err != nil {
		return task.Task{}, false, fmt.Errorf("look up task %d: %w", seq, err)
	}
	return t, ok, nil
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
// nobody may have been shown yet; nil when there is none.
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
func (tx *Tx) Add(t task.Task, raw []byte) (seq int64, err error) {
	if seq, err = tx.add(t, raw); err != nil {
		return 0, fmt.Errorf("add task %s: %w", t.ID, err)
	}
	return seq, nil
}

func (tx *Tx) add(t task.Task, raw []byte) (int64, error) {
	if t.Revision > 1 {
		if _, err := tx.exec("UPDATE tasks SET latest = 0 WHERE id = ? AND revision < ? AND latest = 1", string(t.ID), t.Revision); err != nil {
			return 0, err
		}
	}
	if !tx.opened && !tx.absent[t.ID] { // the tables would say so themselves, but later
		if there, found, err := tx.latest(t.ID); found || err != nil {
			return 0, tx.refuse(err, fmt.Errorf("revision %d of it is there", there.Revision))
		}
	}
	delete(tx.absent, t.ID)
	seq, err := tx.ledger.nextTask()
	if err != nil {
		return 0, err
	}
	if raw == nil {
		raw = []byte{} // a column for bytes, not for NULL
	}
	t.Seq, t.Latest, t.ResultSum = seq, true, ""
	t.Until, t.Deadline, t.Received, t.Finished = exact(t.Until), exact(t.Deadline), exact(t.Received), exact(t.Finished)
	tx.stage.setTask(&taskChange{Task: t, added: true, raw: raw})
	tx.counts.add(t.Requester, t.State, 1)
	return seq, nil
}

// nextTask gives a Seq that no task ever had. SQLite would say only afterwards
// which one it gave. One that a failed group was given is not given again.
func (l *Ledger) nextTask() (int64, error) {
	if l.lastTask == 0 {
		last, _, err := first(background, l.idleReader.read, one[int64], "SELECT seq FROM sqlite_sequence WHERE name = 'tasks'")
		if err != nil {
			return 0, err
		}
		l.lastTask = last
	}
	l.lastTask++
	return l.lastTask, nil
}
