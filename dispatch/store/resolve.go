package store

import (
	"context"
	"errors"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A Finder looks up the tasks that a message may name: as a transaction sees them, or as
// committed.
type Finder struct {
	Latest func(envelope.ID) (task.Task, bool, error)
	named  func(message string) (task.Message, bool, error)
	task   func(seq int64) (task.Task, bool, error)
}

// Finder returns a Finder of the tasks that the transaction sees.
func (tx *Transaction) Finder() Finder { return Finder{tx.Latest, tx.AnyMessageWithID, tx.Task} }

// Finder returns a Finder of committed tasks.
func (rd *Reader) Finder(ctx context.Context) Finder {
	known := func(row task.Task, err error) (task.Task, bool, error) {
		if errors.Is(err, ledger.ErrUnknown) {
			return task.Task{}, false, nil
		}
		return row, err == nil, err
	}
	return Finder{
		Latest: func(id envelope.ID) (task.Task, bool, error) { return known(rd.Newest(ctx, id)) },
		named:  func(message string) (task.Message, bool, error) { return rd.Ledger.AnyMessageWithID(ctx, message) },
		task:   func(seq int64) (task.Task, bool, error) { return known(rd.Ledger.Task(ctx, seq)) },
	}
}

// Resolve returns the task that a message names, and whether it names one: the latest revision
// of an id, or the revision that a named message is about. own is the task of the run that sent
// the message; its id means that revision.
func (f Finder) Resolve(m envelope.Message, own task.Task) (task.Task, bool, error) {
	for _, name := range conversation.References(m) {
		row, found, err := f.refer(name, own)
		if found || err != nil {
			return row, found, err
		}
	}
	return task.Task{}, false, nil
}

func (f Finder) refer(name conversation.Reference, own task.Task) (task.Task, bool, error) {
	switch name.Task {
	case "":
		m, found, err := f.named(name.Message)
		if err != nil || !found || m.Task == 0 {
			return task.Task{}, false, err
		}
		return f.task(m.Task)
	case own.ID:
		return own, true, nil
	}
	return f.Latest(name.Task)
}

// ResolveThread returns the tasks that wait for a message of a thread that names no task.
func ResolveThread(tx *Transaction, m envelope.Message) (tasks []task.Task, err error) {
	if !conversation.ByThread(m) {
		return nil, nil
	}
	for _, name := range conversation.Recipients(m) {
		more, err := tx.Awaiting(m.Thread, name)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}
	return tasks, nil
}

// ResolveWork returns the task that the sender of a request works on: the named task if it is
// the sender's, or else the task that began last, in the run of a message of Clutch first.
func (rd *Reader) ResolveWork(tx *Transaction, m envelope.Message) (task.Task, bool, error) {
	if !rd.Agents.Known(m.From) {
		return task.Task{}, false, nil
	}
	named, known, err := tx.Finder().Resolve(m, task.Task{})
	if err != nil || known && named.Agent == m.From && conversation.InWork(named) {
		return named, known && err == nil, err
	}
	run := ""
	if m.Clutch != nil {
		run = m.Clutch.RunID
	}
	row, found, err := rd.ParentOf(tx, m.From, named.ID, run)
	if err != nil || found && (row.ID == named.ID || !conversation.MustHave(m)) {
		return row, found, err
	}
	if conversation.MustHave(m) {
		return task.Task{}, false, nil
	}
	latest := int64(0)
	for held, err := range rd.HeldOf(context.Background(), m.From) {
		if err != nil {
			return task.Task{}, false, err
		}
		if conversation.Suspended(held) {
			latest = max(latest, held.Seq)
		}
	}
	return tx.Task(latest)
}
