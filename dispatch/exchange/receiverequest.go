package exchange

import (
	"errors"
	"fmt"
	"slices"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// judgeRequest lets policy decide on a request in a line, after the check of its context. A
// request for several agents only combines answers: the request of each agent is judged by
// itself.
func (rc *Receiver) judgeRequest(c *Submission, findings envelope.Findings) task.Verdict {
	to := conversation.Recipients(*c.Message)
	several := len(to) > 1 || slices.Contains(to, envelope.Everybody)
	switch {
	case c.Task.Clutch.Routed():
		c.Task.Agent, c.Task.Routed = envelope.Everybody, true
		several = false
	case len(to) == 1:
		c.Task.Agent = to[0]
	}
	v, degraded := rc.Delegator.judgeInContext(c, several, findings)
	c.Inbound.degraded = degraded
	return v
}

// receiveRequest accepts a request like a line of AINL. The differences: it has no revisions,
// it may be cancelled before it arrives, and it may be for several agents.
func (rc *Receiver) receiveRequest(tx *store.Transaction, c *Submission) error {
	last, found, err := tx.Latest(c.Task.ID)
	if err != nil {
		return err
	}
	if other, err := rc.denyOthers(tx, c, last, found); other || err != nil {
		return err
	}
	if done, err := rc.receiveKnown(tx, c, last, found); done || err != nil {
		return err
	}
	if c.Inbound.answer != nil {
		return rc.receiveAnswer(tx, c)
	}
	if c.Verdict.Admit {
		if why, err := rc.findParent(tx, c); err != nil {
			return err
		} else if why.Message != "" {
			return rc.deny(tx, c, why)
		}
	}
	leader, why, err := checkCommand(tx, c)
	switch {
	case err != nil:
		return err
	case why.Message != "":
		return rc.deny(tx, c, why)
	case leader != "":
		c.Verdict = conversation.SameCommand(c.Task, c.Verdict.Findings)
	}
	var names []string
	if leader == "" {
		if names, err = rc.Acceptor.requestedAgents(tx, c); err != nil {
			return err
		}
	}
	if err := rc.addRequest(tx, c, last, found); err != nil {
		return err
	}
	if err := keepCommand(tx, c, leader); err != nil {
		return err
	}
	if stopped, err := rc.cancelledBefore(tx, c); stopped || err != nil {
		return err
	}
	if len(names) > 0 && c.Row.State == task.Held {
		return rc.Acceptor.requestEach(tx, c, names)
	}
	return nil
}

// receiveKnown takes a request that was received before, or whose task is there already. It
// reports whether the request is dealt with.
func (rc *Receiver) receiveKnown(tx *store.Transaction, c *Submission, last task.Task, found bool) (bool, error) {
	if c.Message.Dialect == envelope.Clutch {
		if known, err := rc.receivedBefore(tx, c); known || err != nil || !found {
			return known, err
		}
		return rc.clutch().receiveAttempt(tx, c, last)
	}
	if found {
		if rc.authenticatedNow(c, last) {
			return false, nil
		}
		return true, rc.receiveAgain(tx, c, last)
	}
	return rc.receivedBefore(tx, c)
}

// authenticatedNow reports whether a request was refused for its sender before and has the
// sender's secret now. Such a request is judged again.
func (rc *Receiver) authenticatedNow(c *Submission, last task.Task) bool {
	return last.Hash == c.Task.Hash && last.Status == envelope.Rejected && last.Kind == envelope.Unauthorized && !c.Line.Replayed &&
		rc.Agents.Protocol.Secret(c.Message.From) != ""
}

// addRequest adds the task that a message requests, and records the message.
func (rc *Receiver) addRequest(tx *store.Transaction, c *Submission, last task.Task, found bool) error {
	c.Disposition = Accepted
	if err := rc.Acceptor.revise(tx, c, last, found); err != nil {
		return err
	}
	if _, err := tx.Record(outbox.RecordOf(*c.Message, task.ByLine, c.Row.Seq, c.Now)); err != nil {
		return err
	}
	if !c.Inbound.degraded {
		return nil
	}
	return tx.Log(store.Event(c.Row, task.KindContextDegraded, map[string]any{"ref": c.Message.Context.Ref}))
}

// receiveAgain ignores a request whose id has the same content, and refuses a request whose id
// has another content, in any dialect.
func (rc *Receiver) receiveAgain(tx *store.Transaction, c *Submission, last task.Task) error {
	if last.Hash == c.Task.Hash {
		return rc.Acceptor.ignoreDuplicate(tx, c, last)
	}
	if c.isFragment() {
		return rc.deny(tx, c, c.Verdict.Findings...)
	}
	c.Row = last
	if own, err := rc.isDelivered(tx, c, last); own || err != nil {
		return err
	}
	c.Disposition = Conflict
	if err := tx.Log(conflictEvent(c, last)); err != nil {
		return err
	}
	why := fmt.Sprintf("%s was asked for with other content before", last.ID)
	return rc.replyError(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
}

// isDelivered ignores a line that the daemon has delivered to the agent of a task.
func (rc *Receiver) isDelivered(tx *store.Transaction, c *Submission, last task.Task) (bool, error) {
	if rc.Agents.Inbox(last.Agent).File == "" {
		return false, nil
	}
	raw, err := tx.Raw(last.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return false, nil // too old to be kept
	}
	if err != nil {
		return false, err
	}
	line, err := rc.Messenger.InboxLine(last, raw)
	if err != nil {
		return false, err
	}
	if hash, _ := envelope.ContentHash(line); hash != c.Message.Hash {
		return false, nil
	}
	return true, tx.Log(store.Event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
}

// cancelledBefore ends a request that was cancelled before it arrived.
func (rc *Receiver) cancelledBefore(tx *store.Transaction, c *Submission) (bool, error) {
	cancels, err := tx.Replies(c.Message.ID, envelope.Cancels, c.Message.From, c.Now.Add(-outbox.Premature))
	if err != nil || len(cancels) == 0 || c.Row.State == task.Done {
		return false, err
	}
	m := cancels[0]
	row, stopped, err := rc.Writer.DecideOn(tx, c.Row.Seq, true, &core.Cancel{
		Task: c.Row.Seq, Seen: core.See(c.Row), By: core.By{Who: m.From, Reason: m.ID}, Request: c.Task, Levels: c.Verdict.Levels,
	})
	if stopped {
		c.Row = row
	}
	return stopped, err
}

// mustHaveTask reports whether the sender of a delegation must have a task to delegate. In CAP a
// person starts a task with it (CAP-17), and with conversation.unknown_senders: accept an
// unknown sender does.
func (rc *Receiver) mustHaveTask(m envelope.Message) bool {
	return rc.Agents.Known(m.From) || m.Dialect == envelope.CLowl && !rc.Agents.Protocol.AcceptsUnknown()
}

// findParent finds the task on which the sender of a request works. It returns a finding when
// the sender delegates without such a task (CLOWL-30).
func (rc *Receiver) findParent(tx *store.Transaction, c *Submission) (why envelope.Finding, err error) {
	m := *c.Message
	if m.Clutch != nil {
		return rc.clutch().findParent(tx, c)
	}
	parent, found, err := rc.Reader.ResolveWork(tx, m)
	if c.author != nil {
		parent, found = *c.author, true
	}
	switch {
	case err != nil:
		return envelope.Finding{}, err
	case found:
		c.knownParent, c.parent = &parent, &parent
		if m.Act == envelope.Delegates {
			if c.tie = m.Tie; c.tie == envelope.Oversee { // only the daemon asks overseers: any program can append a line (CAP-24)
				c.tie = envelope.Assist
			}
		}
	case m.Act == envelope.Delegates && rc.mustHaveTask(m):
		why = envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "has no such task that it could hand on"}
	}
	return why, nil
}
