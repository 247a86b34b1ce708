package dispatch

import (
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
	if row.Seq == 0 || !conversation.Resumes(m.Act) {
		return nil
	}
	fresh, found, err := tx.Task(row.Seq)
	if err != nil || !found {
		return err
	}
	question := conversation.IsQuestion(m, fresh)
	parent, above, err := tx.Task(fresh.Parent)
	if err != nil {
		return err
	}
	for _, one := range []task.Task{fresh, parent} {
		if one.Seq == parent.Seq && !above || !conversation.Wakes(m, question, one) {
			continue
		}
		if _, _, err := d.rouse(tx, one, map[string]any{"from": m.From}); err != nil {
			return err
		}
	}
	return nil
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
