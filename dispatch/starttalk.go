package dispatch

import (
	"mailboxd/envelope"
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
		Open: toldOf(c.tie),
	})
}

// toldOf reports whether who asked for a task of that tie hears how it goes in
// messages about it. Who asked for others is told otherwise.
func toldOf(tie envelope.Tie) bool { return tie != envelope.Oversee && tie != envelope.Transfer }

// talkAgain has a task that is run again heard of by whom it was. It belongs to
// the one above as it did, unless that is over, and did without it.
func (d *Dispatcher) talkAgain(tx *transaction, row task.Task, last int64) error {
	talk, talks, err := tx.Talk(last)
	if err != nil || !talks {
		return err
	}
	if talk.Tie != "" {
		above, found, err := tx.Task(row.Parent)
		switch {
		case err != nil:
			return err
		case !found || above.State == task.Done:
			talk.Tie = envelope.Fork
		}
	}
	talk.Task, talk.Notified, talk.Open, talk.Rounds = row.Seq, 0, toldOf(talk.Tie), 0
	return tx.StartTalk(talk)
}
