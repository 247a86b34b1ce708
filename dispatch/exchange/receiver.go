package exchange

import (
	"cmp"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// A Receiver processes the messages in lines.
type Receiver struct {
	*outbox.Base
	Acceptor  *Acceptor
	Delegator *Delegator
	Completer *Completer
}

// JudgeMessage lets policy decide on the request of a message in a line.
func (rc *Receiver) JudgeMessage(c *Submission) {
	m := c.Inbound.Message
	if !c.DecodeFindings.Refused() {
		c.Inbound.answer, c.Inbound.unread = rc.answerOf(m)
	}
	if c.Judged = (task.Verdict{Findings: c.DecodeFindings}); conversation.AsksForWork(m) {
		c.Judged = rc.Acceptor.HoldRecovered(c.Task, rc.judgeRequest(c, c.DecodeFindings))
	}
}

// Receive records a message and applies its effect. Its transaction may run again, so it sets
// all fields that it changes.
func (rc *Receiver) Receive(tx *store.Transaction, c *Submission) error {
	m := c.Inbound.Message
	c.Disposition, c.Row, c.parent, c.Verdict = Received, task.Task{}, nil, c.Judged
	c.refusal, c.knownParent, c.tie = nil, nil, ""
	c.Members = nil
	if !c.Verdict.Admit && c.Task.ID != "" {
		c.Refuse()
	}
	if own, err := rc.isOwnLine(tx, c); own || err != nil {
		return err
	}
	if c.SignatureFault != "" {
		return rc.refuseSignature(tx, c)
	}
	if why := rc.checkSender(m, c.author != nil || verified(m)); why.Message != "" {
		return rc.deny(tx, c, why)
	}
	if c.Task.ID != "" {
		return rc.receiveRequest(tx, c)
	}
	if c.Verdict.Findings.Refused() {
		return rc.deny(tx, c, c.Verdict.Findings...)
	}
	if known, err := rc.receivedBefore(tx, c); known || err != nil {
		return err
	}
	return rc.effect(tx, c)
}

// effect applies the effect of a message that requests no work.
func (rc *Receiver) effect(tx *store.Transaction, c *Submission) error {
	row, found, err := tx.Finder().Resolve(c.Inbound.Message, task.Task{})
	if err != nil {
		return err
	}
	c.Row = row
	if m := c.Inbound.Message; !c.Line.Replayed && rc.Agents.Known(m.From) {
		rc.Pauses.Presence.Note(&m, c.Now)
	}
	switch c.Inbound.Message.Act {
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
	if c.Inbound.Message.Clutch != nil {
		return rc.clutch().receiveOther(tx, c, found)
	}
	return rc.receiveInfo(tx, c)
}

// isOwnLine ignores a line that the daemon has written.
func (rc *Receiver) isOwnLine(tx *store.Transaction, c *Submission) (bool, error) {
	recorded, found, err := tx.MessageWithHash(c.Inbound.Message.Hash)
	if err != nil || !found || recorded.Via != task.ByDaemon {
		return false, err
	}
	return true, tx.Log(store.Event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.Line.File, "offset": c.Line.Offset, "message": recorded.Seq}))
}

// checkSender returns a finding when a message fails the authentication of its sender
// (CLOWL-18). The task file of a run and a verified signature prove the sender, so that no
// secret is needed.
func (rc *Receiver) checkSender(m envelope.Message, proven bool) envelope.Finding {
	secret := ""
	if !proven {
		secret = rc.Agents.Protocol.Secret(m.From)
	}
	why := conversation.Distrust(m, secret)
	return envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: why}
}

// receivedBefore ignores a message that was received before, and refuses a message whose id
// belongs to another content (CLOWL-37). A message without an id may be sent twice, so it is a
// duplicate only when its line is read again.
func (rc *Receiver) receivedBefore(tx *store.Transaction, c *Submission) (bool, error) {
	m := c.Inbound.Message
	if m.Clutch != nil {
		return rc.clutch().receivedBefore(tx, c)
	}
	if m.Dialect != envelope.CLowl {
		if !c.Line.Replayed {
			return false, nil
		}
		_, known, err := tx.MessageWithHash(m.Hash)
		return known, err
	}
	recorded, found, err := tx.MessageWithID(m.ID)
	switch {
	case err != nil || !found:
		return false, err
	case recorded.Hash == m.Hash:
		return true, tx.Log(store.Event(task.Task{}, task.KindMessageDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset, "message": recorded.Seq}))
	}
	return true, rc.deny(tx, c, envelope.Finding{Kind: envelope.DuplicateConflict, Field: "mid", Message: "was said with other content before"})
}

// deny refuses a message and notifies its sender, once. A request also gets a result file,
// unless another task has its id.
func (rc *Receiver) deny(tx *store.Transaction, c *Submission, why ...envelope.Finding) error {
	if c.Task.ID != "" {
		last, known, err := tx.Latest(c.Task.ID)
		switch {
		case err != nil:
			return err
		case !known:
			return rc.refuseRequest(tx, c, why)
		case last.Hash == c.Task.Hash:
			return rc.Acceptor.ignoreDuplicate(tx, c, last)
		}
	}
	c.Disposition, c.Verdict = Unnamed, task.Verdict{Findings: why}
	if err := tx.Log(lineRejected(c)); err != nil {
		return err
	}
	return rc.replyError(tx, c, dialect.FailureOf(c.Verdict.Findings.Kind(), c.Verdict.Findings.Refusals().String()))
}

// refuseRequest adds a rejected task for a request that is refused for its form or its sender.
// The requester is notified of this end.
func (rc *Receiver) refuseRequest(tx *store.Transaction, c *Submission, why envelope.Findings) error {
	c.Inbound.answer, c.knownParent, c.parent, c.tie = nil, nil, nil, ""
	c.Verdict = task.Verdict{Findings: why}
	c.Refuse()
	return rc.addRequest(tx, c, task.Task{}, false)
}

// replyError notifies the sender of what is wrong with a message, unless it did so when the
// line was read before.
func (rc *Receiver) replyError(tx *store.Transaction, c *Submission, why envelope.Failure) error {
	m := conversation.ErrorReply(c.Inbound.Message, why)
	if to := c.Inbound.Message; c.Line.Replayed {
		replies, err := tx.Replies(cmp.Or(to.ID, to.Cause), m.Act, envelope.Mailboxd, time.Time{})
		if err != nil || len(replies) > 0 {
			return err
		}
	}
	return rc.reply(tx, c, m)
}

// reply sends a message to the sender of another one, in the sender's dialect. Some senders
// have no inbox.
func (rc *Receiver) reply(tx *store.Transaction, c *Submission, m envelope.Message) error {
	to := c.Inbound.Message
	if to.From == "" || to.From == envelope.Everybody || to.From == envelope.Mailboxd {
		return nil
	}
	m.Task, m.Cause, m.Thread, m.Trace = to.Task, to.ID, cmp.Or(to.Thread, to.ID, envelope.Mailboxd), to.Trace
	if to.Dialect == envelope.CAP {
		m.Cause = cmp.Or(to.ID, to.Cause) // the sender's id of the task, where that is no valid file name
	}
	m.From, m.Time = cmp.Or(m.From, envelope.Mailboxd), c.Now
	if m.To == nil {
		m.To = []string{to.From}
	}
	return rc.Messenger.Emit(tx, to.Dialect, m, c.Row.Seq, rc.Messenger.InboxOf(to.From))
}
