package dispatch

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// wake has those run again for whom a message about a task is what they wait
// for: the agent of the task, and that of the one above it. A task that is held
// for its children goes on before their end only when its agent is asked
// something. It runs in the transaction that records the message.
func (d *Dispatcher) wake(tx *transaction, row task.Task, m envelope.Message) error {
	if row.Seq == 0 || !talks(m.Act) {
		return nil
	}
	fresh, found, err := tx.Task(row.Seq)
	if err != nil || !found {
		return err
	}
	asks := asks(m) || conversation.AwaitsReply(fresh) && m.From == fresh.Agent
	parent, above, err := tx.Task(fresh.Parent)
	if err != nil {
		return err
	}
	for _, one := range []task.Task{fresh, parent} {
		if one.Seq == parent.Seq && !above || !hears(one, m, asks) {
			continue
		}
		if _, _, err := d.rouse(tx, one, map[string]any{"from": m.From}); err != nil {
			return err
		}
	}
	return nil
}

// hears reports whether a message is what the agent of a task waits for.
func hears(row task.Task, m envelope.Message, asks bool) bool {
	if !conversation.Suspended(row) || row.Agent == envelope.Ourselves || row.Agent == m.From || !slices.Contains(m.To, row.Agent) {
		return false
	}
	return asks || conversation.AwaitsReply(row)
}

// talks reports whether an act is something to go on with; what only says how
// far somebody is is not.
func talks(act envelope.Act) bool {
	switch act {
	case envelope.Informs, envelope.Asks, envelope.Tells, envelope.Inquires, envelope.Completes, envelope.Fails:
		return true
	}
	return false
}

// asks reports whether the sender of a message goes on when it has an answer.
func asks(m envelope.Message) bool {
	return m.WantsReply || m.Act == envelope.Asks || m.Act == envelope.Inquires
}

// rouse lets a task that waits for words start again, unless something else
// holds it as well.
func (d *Dispatcher) rouse(tx *transaction, row task.Task, why map[string]any) (task.Task, bool, error) {
	next, woken, err := d.decideOn(tx, row.Seq, false, &core.Wake{Task: row.Seq, Attempt: row.Attempt, Data: why})
	if !woken {
		next = row
	}
	return next, woken, err
}
