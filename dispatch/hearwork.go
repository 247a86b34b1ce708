package dispatch

import (
	"cmp"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// handOn finds the task whose agent asks for something, and says why that may
// not hand it on, if so: it does not have it (CLOWL-30).
func (d *Dispatcher) handOn(tx *transaction, c *claim) (why envelope.Finding, err error) {
	m := *c.said
	above, found, err := d.workOf(tx, m)
	switch {
	case err != nil:
		return envelope.Finding{}, err
	case found:
		c.above, c.parent = &above, &above
		if m.Act == envelope.Delegates {
			if c.tie = m.Tie; c.tie == envelope.Oversee { // of which only we ask: anybody may append a line (CAP-24)
				c.tie = envelope.Assist
			}
		}
	case m.Act == envelope.Delegates && (m.Dialect == envelope.CLowl || d.agents.Known(m.From)): // in CAP, others begin something with it (CAP-17)
		why = envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "has no such task that it could hand on"}
	}
	return why, nil
}

// workOf returns the task that the sender of a message works on: the one that the
// message names, if that is its own, or else the one it began last. A message of
// CLowl that hands work on has to name it, or nothing at all.
func (d *Dispatcher) workOf(tx *transaction, m envelope.Message) (row task.Task, found bool, err error) {
	if !d.agents.Known(m.From) {
		return task.Task{}, false, nil
	}
	named, known, err := aboveOf(tx, m)
	if err != nil || known && named.Agent == m.From && inWork(named) {
		return named, known && err == nil, err
	}
	row, found, err = d.parentOf(tx, m.From, named.ID)
	if err != nil || found && row.ID == named.ID {
		return row, found, err
	}
	if m.Act == envelope.Delegates && m.Dialect == envelope.CLowl && m.Cause != "" {
		return task.Task{}, false, nil
	}
	if found {
		return row, true, nil
	}
	latest := int64(0)
	for _, held := range d.held.all() {
		if held.words && held.agent.Value() == m.From {
			latest = max(latest, held.seq)
		}
	}
	if latest == 0 {
		return row, false, nil
	}
	return tx.Task(latest)
}

// inWork reports whether the agent of a task has it, or will have it again.
func inWork(row task.Task) bool {
	return row.State == task.Running || row.State == task.Waiting || core.WaitsForWords(row)
}

// aboveOf returns the task that a request says it is for: the one that it is a
// reply to, or whose dotted id its own begins with (CAP-21).
func aboveOf(tx *transaction, m envelope.Message) (task.Task, bool, error) {
	if m.Dialect != envelope.CAP {
		return repliedTo(tx, m.Cause)
	}
	for _, id := range prefixes(m) {
		if row, found, err := tx.Latest(id); found || err != nil {
			return row, found, err
		}
	}
	return task.Task{}, false, nil
}

// prefixes are the tasks that CAP's dotted id says one is part of, the nearest
// first.
func prefixes(m envelope.Message) (ids []envelope.ID) {
	if m.Dialect != envelope.CAP {
		return nil
	}
	name := cmp.Or(m.ID, string(m.Task))
	for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name, '.') {
		name = name[:at]
		ids = append(ids, dialect.TaskID(name))
	}
	return ids
}

// concerned returns the task that a message is about.
func concerned(tx *transaction, m envelope.Message) (row task.Task, found bool, err error) {
	if m.Task != "" {
		if row, found, err = tx.Latest(m.Task); found || err != nil {
			return row, found, err
		}
	}
	return repliedTo(tx, m.Cause)
}

// repliedTo returns the task that a message asks for, or is about, by the name
// of the message.
func repliedTo(tx *transaction, name string) (row task.Task, found bool, err error) {
	if name == "" {
		return task.Task{}, false, nil
	}
	if row, found, err = tx.Latest(dialect.TaskID(name)); found || err != nil {
		return row, found, err
	}
	m, known, err := tx.Named(name)
	if err != nil || !known || m.Task == 0 {
		return task.Task{}, false, err
	}
	return tx.Task(m.Task)
}
