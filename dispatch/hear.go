package dispatch

import (
	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// An utterance is a message of another dialect than AINL on its way from a line
// into the ledger, and what it leads to. What a transaction finds out begins
// anew each time that runs.
type utterance struct {
	message  envelope.Message
	degraded bool        // what it refers to is not there, and what it has instead is used
	answer   *lineAnswer // what it answers, when it ends a task that waits for its sender
	unread   error       // why that cannot be found out now; nil: it was

	ended *turn // what becomes of the task that it answered; nil: it answered none
}

// listen judges what a message in a line asks for, like any request.
func (d *Dispatcher) listen(c *claim) {
	m := c.heard.message
	if !c.odd.Refused() {
		c.heard.answer, c.heard.unread = d.answerOf(m)
	}
	if c.judged = (task.Verdict{Findings: c.odd}); conversation.AsksForWork(m) {
		c.judged = d.doubt(c.task, d.judgeRequest(c, c.odd))
	}
}

// hear takes one message in. It runs inside a transaction that may be run again,
// so it sets all it changes.
func (d *Dispatcher) hear(tx *transaction, c *claim) error {
	u, m := c.heard, c.heard.message
	c.fate, c.row, c.parent, c.verdict = heard, task.Task{}, nil, c.judged
	c.refusal, c.above, c.tie = nil, nil, ""
	c.members, u.ended = nil, nil
	if !c.verdict.Admit && c.task.ID != "" {
		c.refuse()
	}
	if ours, err := d.isOurs(tx, c); ours || err != nil {
		return err
	}
	if why := d.distrust(m); why.Message != "" {
		return d.deny(tx, c, why)
	}
	if c.task.ID != "" {
		return d.hearRequest(tx, c)
	}
	if c.verdict.Findings.Refused() {
		return d.deny(tx, c, c.verdict.Findings...)
	}
	if known, err := d.heardBefore(tx, c); known || err != nil {
		return err
	}
	return d.effect(tx, c)
}

// effect does what a message does that asks for no work.
func (d *Dispatcher) effect(tx *transaction, c *claim) error {
	row, found, err := tx.finder().resolve(c.heard.message, task.Task{})
	if err != nil {
		return err
	}
	c.row = row
	switch c.heard.message.Act {
	case envelope.Cancels:
		return d.hearCancel(tx, c, found)
	case envelope.Asks:
		return d.hearQuestion(tx, c, found)
	case envelope.Announces:
		return d.hearAnnouncement(tx, c)
	case envelope.Completes, envelope.Fails:
		return d.hearEnd(tx, c, found)
	case envelope.Accepts, envelope.Reports, envelope.Waits, envelope.Stops:
		return d.hearProgress(tx, c, found)
	}
	return d.hearNews(tx, c)
}

// isOurs ignores a line that we wrote: what we say is nothing that we hear.
func (d *Dispatcher) isOurs(tx *transaction, c *claim) (bool, error) {
	was, found, err := tx.Said(c.heard.message.Hash)
	if err != nil || !found || was.Via != task.ByDaemon {
		return false, err
	}
	return true, tx.Log(event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.line.File, "offset": c.line.Offset, "message": was.Seq}))
}

// distrust says why a message cannot be from whom it says, if so (CLOWL-18).
func (d *Dispatcher) distrust(m envelope.Message) envelope.Finding {
	why := conversation.Distrust(m, d.agents.Protocol.Secret(m.From))
	return envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: why}
}

// fieldsOf are what a dialect calls what we speak of in findings.
var fieldsOf = map[envelope.Dialect]struct{ from, to, about string }{
	envelope.CLowl: {"from", "to", "pid"},
	envelope.CAP:   {"sender_id", "recipient_id", "task_id"},
}

// heardBefore ignores a message that was taken in already, and refuses one of
// which another content was (CLOWL-37). A message without a name of its own may
// be said twice; it is known again only when a line is read again.
func (d *Dispatcher) heardBefore(tx *transaction, c *claim) (bool, error) {
	m := c.heard.message
	if m.Dialect != envelope.CLowl {
		if !c.line.Replayed {
			return false, nil
		}
		_, known, err := tx.Said(m.Hash)
		return known, err
	}
	was, found, err := tx.MessageNamed(m.ID)
	switch {
	case err != nil || !found:
		return false, err
	case was.Hash == m.Hash:
		return true, tx.Log(event(task.Task{}, task.KindMessageDuplicate, map[string]any{"file": c.line.File, "offset": c.line.Offset, "message": was.Seq}))
	}
	return true, d.deny(tx, c, envelope.Finding{Kind: envelope.DuplicateConflict, Field: "mid", Message: "was said with other content before"})
}
