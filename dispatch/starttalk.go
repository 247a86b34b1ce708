package dispatch

import (
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// startTalk remembers of a claim that was accepted what there is to remember
// beside the task: nothing of an AINL request that belongs to no other task.
func startTalk(tx *transaction, c *claim) error {
	if c.said == nil || c.said.Dialect == "" && c.tie == "" {
		return nil
	}
	return tx.StartTalk(task.Conversation{
		Task: c.row.Seq, Message: c.said.ID, Thread: c.said.Thread, Trace: c.said.Trace, Tie: c.tie,
		Open: conversation.Notified(c.tie),
	})
}

// talkAgain has a task that is run again heard of by whom it was. It belongs to
// the one above as it did, unless that is over, and did without it.
func (d *Dispatcher) talkAgain(tx *transaction, row task.Task, last int64) error {
	talk, talks, err := tx.Talk(last)
	if err != nil || !talks {
		return err
	}
	above, found, err := tx.Task(row.Parent)
	if err != nil {
		return err
	}
	return tx.StartTalk(conversation.Retried(talk, row.Seq, !found || above.State == task.Done))
}
