package exchange

import (
	"fmt"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// WrittenBy attributes a submission to the task whose run wrote its line, because the line is
// in the task file of that run; nil if the ledger doesn't know the run. The line's own claims
// count only against it: one that differs refuses the submission.
func (c *Submission) WrittenBy(author *task.Task) {
	c.inRunFile, c.author = true, author
	if author == nil {
		c.object(envelope.Unauthorized, "", "the ledger doesn't know the run whose task file has this line")
		return
	}
	from, field := &c.Task.Requester, "requester_id"
	if c.Inbound != nil {
		from, field = &c.Inbound.Message.From, fieldsOf[c.dialect()].from
		c.Task.Requester = author.Agent
	}
	if claimed := *from; claimed != "" && claimed != author.Agent {
		c.object(envelope.IdentityMismatch, field, fmt.Sprintf("is %q, and the line was written by a run of %q", claimed, author.Agent))
	}
	*from = author.Agent
	parent, field := c.Task.Named(envelope.ParentTask), "metadata."+envelope.ParentTask
	if c.Task.Clutch != nil && c.Task.Clutch.Parent != "" {
		parent, field = string(c.Task.Clutch.Parent), "parent_task_id"
	}
	if parent != "" && parent != string(author.ID) {
		c.object(envelope.IdentityMismatch, field, fmt.Sprintf("is %q, and the line was written by a run of %q", parent, author.ID))
	}
}

// object adds a finding to those of the decoding.
func (c *Submission) object(kind envelope.Kind, field, message string) {
	findings := c.DecodeFindings
	c.DecodeFindings = append(findings[:len(findings):len(findings)], envelope.Finding{Kind: kind, Field: field, Message: message})
}

// isOthers reports whether a line in the task file of a run has the id of a task that the run's
// task didn't request. Such a line could replace the work of somebody else.
func isOthers(tx *store.Transaction, c *Submission, last task.Task) (bool, error) {
	if !c.inRunFile {
		return false, nil
	}
	if c.author == nil || last.Parent == 0 {
		return true, nil
	}
	parent, known, err := tx.Task(last.Parent)
	return !known || parent.ID != c.author.ID, err
}

// denyOthers refuses a line in the task file of a run about a task of another run.
func (rc *Receiver) denyOthers(tx *store.Transaction, c *Submission, row task.Task, found bool) (bool, error) {
	if !found {
		return false, nil
	}
	other, err := isOthers(tx, c, row)
	if err != nil || !other {
		return false, err
	}
	return true, rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[c.dialect()].from, Message: "is a run that did not ask for this task"})
}
