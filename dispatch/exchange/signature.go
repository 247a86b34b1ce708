package exchange

import (
	"cmp"
	"fmt"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// CheckSignature checks the signature of a submission, and reports whether it is refused for it. The task file of a run
// proves its sender, so that no signature is needed.
func (rc *Receiver) CheckSignature(c *Submission) (refused bool) {
	c.SignatureFault = ""
	rules := rc.Agents.Protocol.Signatures()
	if rules.None() || c.inRunFile {
		return false
	}
	m := envelope.Message{From: c.Task.Requester}
	if c.Inbound != nil {
		m = c.Inbound.Message
	}
	signed, err := rules.Check(m, c.Now)
	if err != nil {
		c.SignatureFault = err.Error()
		c.Judged = task.Verdict{Findings: envelope.Findings{{Kind: envelope.Unauthorized, Field: "security.auth", Message: c.SignatureFault}}}
		return true
	}
	if signed {
		c.Inbound.Message.Clutch = m.Clutch.Verify()
		if c.Task.Clutch != nil {
			c.Task.Clutch = c.Inbound.Message.Clutch
		}
	}
	return false
}

// verified reports whether CheckSignature has verified the signature of a message.
func verified(m envelope.Message) bool { return m.Clutch.IsSigned() && m.Clutch.Auth.Verified }

// refusals is the run of the refused messages among the ids of messages. No sender has it: those of others have a line end.
const refusals = string(task.KindSignatureRefused)

// refuseSignature refuses a submission whose signature is missing or doesn't count. Nothing in it is trusted, so it takes no
// id: neither of a task nor of a message. A message that was accepted before stays a duplicate.
func (rc *Receiver) refuseSignature(tx *store.Transaction, c *Submission) error {
	m := c.Inbound.Message
	if m.Clutch != nil && m.ID != "" && m.Clutch.RunID != "" {
		if hash, found, err := tx.MessageHash(inRunOf(m), m.ID); err != nil || found && hash == m.Hash {
			_, err := rc.clutch().receivedBefore(tx, c)
			return err
		}
	}
	if again, err := recordRefusal(tx, c); again || err != nil {
		return err
	}
	return rc.replyError(tx, c, dialect.FailureOf(envelope.Unauthorized, c.Verdict.Findings.String()))
}

// refuseSignature refuses a line of AINL, which has no signatures, of a sender that has to sign.
func (ac *Acceptor) refuseSignature(tx *store.Transaction, known *KnownIDs, c *Submission) error {
	if c.Task.ID != "" {
		last, found, err := known.latest(tx, c.Task.ID)
		if err != nil {
			return err
		}
		if found && last.Hash == c.Task.Hash {
			return ac.ignoreDuplicate(tx, c, last)
		}
	}
	_, err := recordRefusal(tx, c)
	return err
}

// recordRefusal records a refused submission with an event and a dead letter. It does nothing if that was done when the line was
// read before.
func recordRefusal(tx *store.Transaction, c *Submission) (again bool, err error) {
	c.Disposition = Unnamed
	content := cmp.Or(c.Task.Hash, c.Line.SHA256)
	if c.Line.Replayed {
		if _, again, err := tx.MessageHash(refusals, content); again || err != nil {
			return again, err
		}
	}
	if err := tx.SetMessageHash(refusals, content, content); err != nil {
		return false, err
	}
	if err := tx.AddDeadLetter(DeadLetter(c).Line()); err != nil {
		return false, err
	}
	return false, tx.Log(signatureRefused(c))
}

// signatureRefused returns the event of a message whose signature is refused.
func signatureRefused(c *Submission) task.Event {
	data := map[string]any{
		"file": c.Line.File, "offset": c.Line.Offset, "length": c.Line.Length, "sha256": c.Task.Hash,
		"from": c.Task.Requester, "reason": c.SignatureFault,
	}
	if c.Inbound != nil {
		m := c.Inbound.Message
		data["from"] = m.From
		if m.ID != "" {
			data["message_id"] = m.ID
		}
		if m.Clutch.IsSigned() {
			data["kid"] = fmt.Sprintf("%.80s", m.Clutch.Auth.KeyID) // a sender chose it
		}
	}
	return store.Event(task.Task{}, task.KindSignatureRefused, data)
}
