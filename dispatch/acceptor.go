package dispatch

import (
	"cmp"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// An acceptor adds tasks, each as its verdict and its lineage have it.
type acceptor struct {
	*base
	lost bool // the ledger was lost, and not all lines of that time were met again
}

// ignoreDuplicate ignores a request that was accepted, or refused, with the same content
// before.
func (ac *acceptor) ignoreDuplicate(tx *transaction, c *submission, last task.Task) error {
	c.row, c.fate = last, duplicate
	if c.line.Replayed {
		return nil
	}
	return tx.Log(event(last, task.KindTaskDuplicate, map[string]any{"file": c.line.File, "offset": c.line.Offset}))
}

// object refuses a submission.
func (ac *acceptor) object(c *submission, why envelope.Finding) {
	c.verdict = core.Object(c.verdict, envelope.Enforce, why)
	c.refuse()
}

// trace finds the task whose run a submission comes from, and refuses the submission
// when there are too many of its kind already. It runs inside a transaction.
func (ac *acceptor) trace(tx *transaction, c *submission) error {
	if c.verdict.Findings.Kind() == envelope.Unauthorized {
		return nil // nobody knows that it comes from that agent
	}
	ac.mayHandOn(c)
	if c.above != nil {
		return ac.limitChild(tx, c)
	}
	wanted := c.task.Named(envelope.ParentTask)
	if !ac.agents.Known(c.task.Requester) {
		if wanted != "" {
			c.warn("metadata."+envelope.ParentTask, "is left out: the requester is no agent here")
		}
		return nil
	}
	parent, found, err := ac.reader.parentOf(tx, c.task.Requester, envelope.ID(wanted))
	if err != nil || !found {
		return err
	}
	c.parent = &parent
	if wanted != "" && string(parent.ID) != wanted {
		c.warn("metadata."+envelope.ParentTask, "is no task that the requester has now: read as "+string(parent.ID))
	}
	return ac.limitChild(tx, c)
}

// mayHandOn refuses a submission of an agent that may not hand work to the one it is
// for (CAP-19).
func (ac *acceptor) mayHandOn(c *submission) {
	ours := c.tie == envelope.Oversee || c.tie == envelope.Transfer && c.above.Agent != c.task.Requester // to mend what failed
	if !c.verdict.Admit || ours || c.task.Agent == envelope.Ourselves || !ac.agents.Known(c.task.Requester) {
		return
	}
	why := ac.agents.Protocol.MayDelegate(c.task.Requester, c.task.Agent)
	if why != "" {
		ac.object(c, envelope.Finding{Kind: envelope.DelegationDenied, Field: cmp.Or(fieldsOf[c.dialect()].to, "target_agent"), Message: why})
	}
}

// limitChild refuses a submission that has a parent when it is too sensitive, as that
// is, or when that has too many of its kind already. What we ask for ourselves, to
// gather or to oversee, has other limits.
func (ac *acceptor) limitChild(tx *transaction, c *submission) error {
	if err := ac.heighten(tx, c); err != nil {
		return err
	}
	if !c.verdict.Admit || c.tie == envelope.Member || c.tie == envelope.Oversee {
		return nil
	}
	children, err := tx.Children(c.parent.Seq)
	if err != nil {
		return err
	}
	lineage, err := ac.reader.lineage(tx.Task, *c.parent, children)
	if err != nil {
		return err
	}
	c.verdict = lineage.Admit(c.verdict, c.task.Agent, ac.agents.Mode(envelope.ControlLineage))
	if !c.verdict.Admit {
		c.refuse()
	}
	return nil
}
