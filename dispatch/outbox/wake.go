package outbox

import (
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// WakeFor resumes the tasks that wait for a message about a task: that task, and the one
// above it.
func (ms *Messenger) WakeFor(tx *store.Transaction, row task.Task, m envelope.Message) error {
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
		if _, _, err := ms.Wake(tx, one, map[string]any{"from": m.From}); err != nil {
			return err
		}
	}
	return nil
}

// Wake resumes a suspended task, unless something else holds it too.
func (ms *Messenger) Wake(tx *store.Transaction, row task.Task, why map[string]any) (task.Task, bool, error) {
	next, woken, err := ms.writer.DecideOn(tx, row.Seq, false, &core.Wake{Task: row.Seq, Attempt: row.Attempt, Data: why})
	if !woken {
		next = row
	}
	return next, woken, err
}
