package dispatch

import (
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// startTalk remembers of a claim that was accepted what there is to remember
// beside the task: nothing of an AINL request that belongs to no other task.
func startTalk(tx *ledger.Tx, c *claim) error {
	if c.said.Dialect == "" && c.tie == "" {
		return nil
	}
	return tx.StartTalk(ledger.Talk{
		Task: c.row.Seq, Message: c.said.ID, Thread: c.said.Thread, Trace: c.said.Trace, Tie: c.tie,
		Open: c.tie != envelope.Oversee && c.tie != envelope.Transfer, // who asked for those is told otherwise
	})
}
