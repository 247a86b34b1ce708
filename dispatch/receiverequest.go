package dispatch

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// judgeRequest lets policy decide on a request in a line, once its context is there. One
// for several agents only combines: each agent is requested, and judged, by itself.
func (rc *receiver) judgeRequest(c *submission, findings envelope.Findings) task.Verdict {
	to := conversation.Recipients(*c.said)
	several := len(to) > 1 || slices.Contains(to, envelope.Everybody)
	if len(to) == 1 {
		c.task.Agent = to[0]
	}
	v, degraded := rc.delegator.judgeInContext(c, several, findings)
	c.inbound.degraded = degraded
	return v
}

// receiveRequest accepts a request like a line of AINL, except that it has no revisions,
// may have been cancelled before it came, and may be for several agents.
func (rc *receiver) receiveRequest(tx *transaction, c *submission) error {
	last, found, err := tx.Latest(c.task.ID)
	if err != nil {
		return err
	}
	if found && !rc.authenticatedNow(c, last) {
		return rc.receiveAgain(tx, c, last)
	}
	if !found {
		if known, err := rc.receivedBefore(tx, c); known || err != nil {
			return err
		}
	}
	if c.inbound.answer != nil {
		return rc.receiveAnswer(tx, c)
	}
	if c.verdict.Admit {
		if why, err := rc.findParent(tx, c); err != nil {
			return err
		} else if why.Message != "" {
			return rc.deny(tx, c, why)
		}
	}
	names, err := rc.acceptor.requestedAgents(tx, c)
	if err != nil {
		return err
	}
	if err := rc.enter(tx, c, last, found); err != nil {
		return err
	}
	if stopped, err := rc.cancelledBefore(tx, c); stopped || err != nil {
		return err
	}
	if c.task.Agent == envelope.Ourselves && c.row.State == task.Held {
		return rc.acceptor.requestEach(tx, c, names)
	}
	return nil
}

// authenticatedNow reports whether a request was refused for its sender before and has
// the sender's secret now. Such a request is judged again.
func (rc *receiver) authenticatedNow(c *submission, last task.Task) bool {
	return last.Hash == c.task.Hash && last.Status == envelope.Rejected && last.Kind == envelope.Unauthorized && !c.line.Replayed &&
		rc.agents.Protocol.Secret(c.said.From) != ""
}

// enter adds the task that a message asks for, and records the message.
func (rc *receiver) enter(tx *transaction, c *submission, last task.Task, found bool) error {
	c.fate = accepted
	if err := rc.acceptor.revise(tx, c, last, found); err != nil {
		return err
	}
	if _, err := tx.Record(recordOf(*c.said, task.ByLine, c.row.Seq, c.now)); err != nil {
		return err
	}
	if !c.inbound.degraded {
		return nil
	}
	return tx.Log(event(c.row, task.KindContextDegraded, map[string]any{"ref": c.said.Context.Ref}))
}

// receiveAgain ignores a request whose id has the same content, and refuses one whose id
// has another content, in any dialect.
func (rc *receiver) receiveAgain(tx *transaction, c *submission, last task.Task) error {
	if last.Hash == c.task.Hash {
		return rc.acceptor.ignoreDuplicate(tx, c, last)
	}
	if c.fragment() {
		return rc.deny(tx, c, c.verdict.Findings...)
	}
	c.row = last
	if ours, err := rc.isDelivered(tx, c, last); ours || err != nil {
		return err
	}
	c.fate = conflict
	if err := tx.Log(contradiction(c, last)); err != nil {
		return err
	}
	why := fmt.Sprintf("%s was asked for with other content before", last.ID)
	return rc.replyError(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
}

// isDelivered ignores a line that the daemon has delivered to the agent of a task.
func (rc *receiver) isDelivered(tx *transaction, c *submission, last task.Task) (bool, error) {
	if rc.agents.Inbox(last.Agent).File == "" {
		return false, nil
	}
	raw, err := tx.Raw(last.Seq)
	if err != nil {
		return false, err
	}
	line, err := rc.messenger.inboxLine(last, raw)
	if err != nil {
		return false, err
	}
	if hash, _ := envelope.ContentHash(line); hash != c.said.Hash {
		return false, nil
	}
	return true, tx.Log(event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.line.File, "offset": c.line.Offset}))
}

// cancelledBefore ends a request at once that was cancelled before it came.
func (rc *receiver) cancelledBefore(tx *transaction, c *submission) (bool, error) {
	cancels, err := tx.Replies(c.said.ID, envelope.Cancels, c.said.From, c.now.Add(-premature))
	if err != nil || len(cancels) == 0 || c.row.State == task.Done {
		return false, err
	}
	m := cancels[0]
	row, stopped, err := rc.writer.decideOn(tx, c.row.Seq, true, &core.Cancel{
		Task: c.row.Seq, Seen: core.See(c.row), By: core.By{Who: m.From, Reason: m.ID}, Request: c.task, Levels: c.verdict.Levels,
	})
	if stopped {
		c.row = row
	}
	return stopped, err
}

// findParent finds the task whose agent sends a request, and says why the agent may not
// delegate: it doesn't have that task (CLOWL-30).
func (rc *receiver) findParent(tx *transaction, c *submission) (why envelope.Finding, err error) {
	m := *c.said
	above, found, err := rc.reader.resolveWork(tx, m)
	switch {
	case err != nil:
		return envelope.Finding{}, err
	case found:
		c.above, c.parent = &above, &above
		if m.Act == envelope.Delegates {
			if c.tie = m.Tie; c.tie == envelope.Oversee { // the daemon alone asks overseers: anybody may append a line (CAP-24)
				c.tie = envelope.Assist
			}
		}
	case m.Act == envelope.Delegates && (m.Dialect == envelope.CLowl || rc.agents.Known(m.From)): // in CAP, a person begins a task with it (CAP-17)
		why = envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "has no such task that it could hand on"}
	}
	return why, nil
}
