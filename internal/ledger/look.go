package ledger

import (
	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// toTables brings what the group has changed to the tables, of which somebody
// wants to know more than what it has at hand.
func (tx *Tx) toTables() error {
	if tx.unclear == nil && !tx.opened {
		tx.unclear = tx.open()
	}
	if tx.unclear == nil && !tx.stage.empty() {
		tx.unclear = tx.ledger.tables.write(tx.stage)
		tx.stage = newLayer()
	}
	return tx.unclear
}

// open begins a transaction of SQLite, in which everything below is in the tables.
func (tx *Tx) open() error {
	l := tx.ledger
	l.writing <- struct{}{}
	tx.opened = true
	if _, err := tx.write.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	tx.below = nil
	return l.tables.write(l.layers()...) // asked again: somebody may have folded some
}

// reads are the statements that ask the tables for what no layer has.
func (tx *Tx) reads() *statements {
	if tx.opened {
		return tx.write
	}
	return tx.ledger.idleReader.read
}

// refuse has the function that runs now fail, whatever it makes of the error.
func (tx *Tx) refuse(err, why error) error {
	if err == nil {
		err = why
	}
	tx.wrong = err
	return err
}

// task returns a task as it is now.
func (tx *Tx) task(seq int64) (task.Task, bool, error) {
	if t := tx.changed(seq); t != nil {
		return t.Task, true, nil
	}
	if r, same := tx.ledger.Remembered(seq); same && !tx.opened {
		return r.Task, true, nil
	}
	return first(background, tx.reads(), scanTask, "SELECT "+taskColumns+" FROM tasks WHERE seq = ?", seq)
}

func (tx *Tx) changed(seq int64) *taskChange {
	if t := tx.stage.tasks[seq]; t != nil {
		return t
	}
	for _, c := range tx.below {
		if t := c.tasks[seq]; t != nil {
			return t
		}
	}
	return nil
}

// latest returns the highest revision of an id as it is now.
func (tx *Tx) latest(id envelope.ID) (task.Task, bool, error) {
	if t, ok := tx.changedLatest(id); ok {
		return t, true, nil
	}
	return first(background, tx.reads(), scanTask,
		"SELECT "+taskColumns+" FROM tasks WHERE id = ? ORDER BY revision DESC LIMIT 1", string(id))
}

func (tx *Tx) changedLatest(id envelope.ID) (task.Task, bool) {
	seq, ok := tx.stage.latest[id]
	for _, c := range tx.below {
		if !ok {
			seq, ok = c.latest[id]
		}
	}
	if !ok {
		return task.Task{}, false
	}
	return tx.changed(seq).Task, true
}

// run returns a run as it is now.
func (tx *Tx) run(name task.RunName) (record, bool, error) {
	r := tx.stage.runs[name]
	for _, c := range tx.below {
		if r == nil {
			r = c.runs[name]
		}
	}
	if r != nil {
		return r.record, true, nil
	}
	if t := tx.changed(name.Task); t != nil && (t.added || t.raised && t.Attempt == name.Attempt) {
		return record{}, false, nil // of a task that is not in the tables no run is, and no later one than its attempt says
	}
	return first(background, tx.reads(), scanRecord,
		"SELECT "+runColumns+" FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
}
