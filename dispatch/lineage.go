package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// An agent that asks for something while it works makes a child of its task
// (AINL-01). That has limits, so that it has an end.

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
	if err := ac.reader.heighten(tx, c); err != nil {
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

// warn adds to what is said about a submission.
func (c *submission) warn(field, message string) {
	findings := c.verdict.Findings
	c.verdict.Findings = append(findings[:len(findings):len(findings)], envelope.Finding{Field: field, Message: message})
}

// parentOf returns the task that an agent works on, or did when the line may
// have been written: the one that is wanted, or else the one that was begun
// last, of those that it works on now if there is any. A task that it fetches it
// works on from when that is claimed.
func (rd *reader) parentOf(tx *transaction, agent string, wanted envelope.ID) (parent task.Task, found bool, err error) {
	var running, over []task.Task
	sort := func(it schedule.Item, began bool) error {
		row, known, err := tx.Task(it.Seq)
		switch {
		case err != nil || !known:
			return err
		case row.State == task.Running && began: // one that has its intent alone asks for nothing
			running = append(running, row)
		case began:
			over = append(over, row)
		}
		return nil
	}
	for _, r := range rd.runs.find(func(it schedule.Item) bool { return it.Agent == agent }) {
		err = errors.Join(err, sort(r.item, r.began.Load()))
	}
	for _, it := range rd.bygones.of(agent) { // after the others: a run is first among these, then not among those
		err = errors.Join(err, sort(it, true))
	}
	if rd.agents.Inbox(agent).File != "" {
		claimed, failed := tx.Claimed(agent, time.Now())
		running, err = append(running, claimed...), errors.Join(err, failed)
	}
	if err != nil {
		return task.Task{}, false, err
	}
	all := slices.Concat(running, over)
	if at := slices.IndexFunc(all, func(row task.Task) bool { return row.ID == wanted }); at >= 0 {
		return all[at], true, nil
	}
	if len(running) > 0 {
		all = running
	}
	return lastBegun(tx, all)
}

// lastBegun returns the task of which a run was begun last, if there is any.
func lastBegun(tx *transaction, rows []task.Task) (last task.Task, found bool, err error) {
	var latest task.Run
	for _, row := range rows {
		run, _, err := tx.LastRun(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if !found || run.Intent.After(latest.Intent) {
			last, latest, found = row, run, true
		}
	}
	return last, found, nil
}

// lineage gathers the tasks above one that the run of a parent asks for.
func (rd *reader) lineage(find func(seq int64) (task.Task, bool, error), parent task.Task, children int) (core.Lineage, error) {
	l := core.Lineage{Above: []task.Task{parent}, Children: children, MaxDepth: rd.opts.Depth, MaxChildren: rd.opts.Children}
	for seq := parent.Parent; seq != 0; {
		above, found, err := find(seq)
		if err != nil || !found {
			return l, err
		}
		l.Above, seq = append(l.Above, above), above.Parent
	}
	return l, nil
}

// judgeLineage judges again, by its parents, a task that waited for an earlier
// revision to end, or is to be run again.
func (rd *reader) judgeLineage(ctx context.Context, row task.Task, v task.Verdict) (task.Verdict, error) {
	if row.Parent == 0 || !v.Admit {
		return v, nil
	}
	parent, err := rd.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return v, err
	}
	children, err := rd.Ledger.ChildrenBefore(ctx, row.Parent, row.Seq)
	if err != nil {
		return v, err
	}
	lineage, err := rd.lineage(func(seq int64) (task.Task, bool, error) {
		above, err := rd.Ledger.Task(ctx, seq)
		return above, err == nil, err
	}, parent, children)
	return lineage.Admit(v, row.Agent, rd.agents.Mode(envelope.ControlLineage)), err
}
