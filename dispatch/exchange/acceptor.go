package exchange

import (
	"cmp"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// An Acceptor adds tasks, each as its verdict and its lineage have it.
type Acceptor struct {
	*outbox.Base
	Lost bool // the ledger was lost, and not all lines of that time were met again
}

// ignoreDuplicate ignores a request that was accepted, or refused, with the same content
// before.
func (ac *Acceptor) ignoreDuplicate(tx *store.Transaction, c *Submission, last task.Task) error {
	c.Row, c.Disposition = last, Duplicate
	if c.Line.Replayed {
		return nil
	}
	return tx.Log(store.Event(last, task.KindTaskDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
}

// refuse refuses a submission.
func (ac *Acceptor) refuse(c *Submission, why envelope.Finding) {
	c.Verdict = core.Object(c.Verdict, envelope.Enforce, why)
	c.Refuse()
}

// findParent finds the task whose run a submission comes from, and refuses the submission
// when there are too many of its kind already. It runs inside a transaction.
func (ac *Acceptor) findParent(tx *store.Transaction, c *Submission) error {
	if c.Verdict.Findings.Kind() == envelope.Unauthorized {
		return nil // nobody knows that it comes from that agent
	}
	ac.checkDelegation(c)
	if c.above != nil {
		return ac.limitChild(tx, c)
	}
	wanted := c.Task.Named(envelope.ParentTask)
	if !ac.Agents.Known(c.Task.Requester) {
		if wanted != "" {
			c.warn("metadata."+envelope.ParentTask, "is left out: the requester is no agent here")
		}
		return nil
	}
	parent, found, err := ac.Reader.ParentOf(tx, c.Task.Requester, envelope.ID(wanted))
	if err != nil || !found {
		return err
	}
	c.parent = &parent
	if wanted != "" && string(parent.ID) != wanted {
		c.warn("metadata."+envelope.ParentTask, "is no task that the requester has now: read as "+string(parent.ID))
	}
	return ac.limitChild(tx, c)
}

// checkDelegation refuses a submission of an agent that may not hand work to the one it is
// for (CAP-19).
func (ac *Acceptor) checkDelegation(c *Submission) {
	ours := c.tie == envelope.Oversee || c.tie == envelope.Transfer && c.above.Agent != c.Task.Requester // after a failure
	if !c.Verdict.Admit || ours || c.Task.Agent == envelope.Ourselves || !ac.Agents.Known(c.Task.Requester) {
		return
	}
	why := ac.Agents.Protocol.MayDelegate(c.Task.Requester, c.Task.Agent)
	if why != "" {
		ac.refuse(c, envelope.Finding{Kind: envelope.DelegationDenied, Field: cmp.Or(fieldsOf[c.dialect()].to, "target_agent"), Message: why})
	}
}

// limitChild refuses a submission that has a parent when it is too sensitive, as that
// is, or when that has too many of its kind already. What we ask for ourselves, to
// gather or to oversee, has other limits.
func (ac *Acceptor) limitChild(tx *store.Transaction, c *Submission) error {
	if err := ac.raiseSensitivity(tx, c); err != nil {
		return err
	}
	if !c.Verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	children, err := tx.CountChildren(c.parent.Seq)
	if err != nil {
		return err
	}
	lineage, err := ac.Reader.Lineage(tx.Task, *c.parent, children)
	if err != nil {
		return err
	}
	c.Verdict = lineage.Admit(c.Verdict, c.Task.Agent, ac.Agents.Mode(envelope.ControlLineage))
	if !c.Verdict.Admit {
		c.Refuse()
	}
	return nil
}
