package dispatch

import (
	"cmp"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// judgeMessage lets policy decide on what a message in a line asks for.
func (rc *receiver) judgeMessage(c *submission) {
	m := c.inbound.message
	if !c.odd.Refused() {
		c.inbound.answer, c.inbound.unread = rc.answerOf(m)
	}
	if c.judged = (task.Verdict{Findings: c.odd}); conversation.AsksForWork(m) {
		c.judged = rc.acceptor.doubt(c.task, rc.judgeRequest(c, c.odd))
	}
}

// receive records a message and does what follows from it. Its transaction may be run
// again, so it sets all that it changes.
func (rc *receiver) receive(tx *transaction, c *submission) error {
	m := c.inbound.message
	c.fate, c.row, c.parent, c.verdict = received, task.Task{}, nil, c.judged
	c.refusal, c.above, c.tie = nil, nil, ""
	c.members = nil
	if !c.verdict.Admit && c.task.ID != "" {
		c.refuse()
	}
	if ours, err := rc.isOurs(tx, c); ours || err != nil {
		return err
	}
	if why := rc.distrust(m); why.Message != "" {
		return rc.deny(tx, c, why)
	}
	if c.task.ID != "" {
		return rc.receiveRequest(tx, c)
	}
	if c.verdict.Findings.Refused() {
		return rc.deny(tx, c, c.verdict.Findings...)
	}
	if known, err := rc.receivedBefore(tx, c); known || err != nil {
		return err
	}
	return rc.effect(tx, c)
}

// effect does what follows from a message that asks for no work.
func (rc *receiver) effect(tx *transaction, c *submission) error {
	row, found, err := tx.finder().resolve(c.inbound.message, task.Task{})
	if err != nil {
		return err
	}
	c.row = row
	switch c.inbound.message.Act {
	case envelope.Cancels:
		return rc.receiveCancel(tx, c, found)
	case envelope.Asks:
		return rc.receiveQuestion(tx, c, found)
	case envelope.Announces:
		return rc.receiveAnnouncement(tx, c)
	case envelope.Completes, envelope.Fails:
		return rc.receiveEnd(tx, c, found)
	case envelope.Accepts, envelope.Reports, envelope.Waits, envelope.Stops:
		return rc.receiveProgress(tx, c, found)
	}
	return rc.receiveInfo(tx, c)
}

// isOurs ignores a line that the daemon has written.
func (rc *receiver) isOurs(tx *transaction, c *submission) (bool, error) {
	was, found, err := tx.Said(c.inbound.message.Hash)
	if err != nil || !found || was.Via != task.ByDaemon {
		return false, err
	}
	return true, tx.Log(event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.line.File, "offset": c.line.Offset, "message": was.Seq}))
}

// distrust says why a message can't be from its sender (CLOWL-18).
func (rc *receiver) distrust(m envelope.Message) envelope.Finding {
	why := conversation.Distrust(m, rc.agents.Protocol.Secret(m.From))
	return envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: why}
}

// receivedBefore ignores a message that was received before, and refuses one whose name
// another content has (CLOWL-37). A message without a name may be sent twice, so it is
// known again only when a line is read again.
func (rc *receiver) receivedBefore(tx *transaction, c *submission) (bool, error) {
	m := c.inbound.message
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
	return true, rc.deny(tx, c, envelope.Finding{Kind: envelope.DuplicateConflict, Field: "mid", Message: "was said with other content before"})
}

// deny refuses a message and tells its sender why, once. A request has a result file
// too, unless another task has its id.
func (rc *receiver) deny(tx *transaction, c *submission, why ...envelope.Finding) error {
	if c.task.ID != "" {
		last, known, err := tx.Latest(c.task.ID)
		switch {
		case err != nil:
			return err
		case !known:
			return rc.refuseRequest(tx, c, why)
		case last.Hash == c.task.Hash:
			return rc.acceptor.ignoreDuplicate(tx, c, last)
		}
	}
	c.fate, c.verdict = unnamed, task.Verdict{Findings: why}
	if err := tx.Log(lineRejected(c)); err != nil {
		return err
	}
	return rc.replyError(tx, c, dialect.FailureOf(c.verdict.Findings.Kind(), c.verdict.Findings.Refusals().String()))
}

// refuseRequest adds the task of a request that is refused for its form or its sender,
// as rejected. Its requester is notified of that end.
func (rc *receiver) refuseRequest(tx *transaction, c *submission, why envelope.Findings) error {
	c.inbound.answer, c.above, c.parent, c.tie = nil, nil, nil, ""
	c.verdict = task.Verdict{Findings: why}
	c.refuse()
	return rc.enter(tx, c, task.Task{}, false)
}

// replyError tells the sender of a message what is wrong with it, unless a reply was
// sent when the line was read before.
func (rc *receiver) replyError(tx *transaction, c *submission, why envelope.Failure) error {
	if to := c.inbound.message; c.line.Replayed {
		told, err := tx.Replies(cmp.Or(to.ID, to.Cause), envelope.Fails, envelope.Ourselves, time.Time{})
		if err != nil || len(told) > 0 {
			return err
		}
	}
	return rc.reply(tx, c, envelope.Message{Act: envelope.Fails, Type: "error", Text: why.Message, Failure: why})
}

// reply sends a message to the sender of another one, in its dialect. Some senders have
// no inbox.
func (rc *receiver) reply(tx *transaction, c *submission, m envelope.Message) error {
	to := c.inbound.message
	if to.From == "" || to.From == envelope.Everybody || to.From == envelope.Ourselves {
		return nil
	}
	m.Task, m.Cause, m.Thread, m.Trace = to.Task, to.ID, cmp.Or(to.Thread, to.ID, envelope.Ourselves), to.Trace
	if to.Dialect == envelope.CAP {
		m.Cause = cmp.Or(to.ID, to.Cause) // the sender's name of the task, where that is no file name
	}
	m.From, m.Time = cmp.Or(m.From, envelope.Ourselves), c.now
	if m.To == nil {
		m.To = []string{to.From}
	}
	return rc.messenger.emit(tx, to.Dialect, m, c.row.Seq, rc.messenger.inboxOf(to.From))
}
