package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// judgeRequest lets policy decide on a request in a line, once its context is
// what it says. One for several agents is only gathered: each of them is asked,
// and judged, by itself.
func (d *Dispatcher) judgeRequest(c *claim, findings envelope.Findings) task.Verdict {
	u, m := c.heard, *c.said
	to := conversation.Recipients(m)
	several := len(to) > 1 || slices.Contains(to, envelope.Everybody)
	switch {
	case several:
		c.task.Agent = envelope.Ourselves
	case len(to) == 1:
		c.task.Agent = to[0]
	}
	if !findings.Refused() {
		var context envelope.Findings
		context, u.degraded = d.checkContext(m, c.task.Agent)
		if findings = append(findings, context...); u.degraded {
			c.task = withoutContext(c.task, m.Context.Ref)
		}
	}
	if !several || findings.Refused() {
		return d.judge(c.task, findings, c.now)
	}
	return conversation.AdmitCombined(c.task, findings)
}

// hearRequest takes a request in as any other one, but for what its dialect has
// that AINL has not: it is not revised, it may have been cancelled before it
// came, and it may be for several.
func (d *Dispatcher) hearRequest(tx *transaction, c *claim) error {
	last, found, err := tx.Latest(c.task.ID)
	if err != nil {
		return err
	}
	if found && !d.provedNow(c, last) {
		return d.hearAgain(tx, c, last)
	}
	if !found {
		if known, err := d.heardBefore(tx, c); known || err != nil {
			return err
		}
	}
	if c.heard.answer != nil {
		return d.hearAnswer(tx, c)
	}
	if c.verdict.Admit {
		if why, err := d.handOn(tx, c); err != nil {
			return err
		} else if why.Message != "" {
			return d.deny(tx, c, why)
		}
	}
	names, err := d.takers(tx, c)
	if err != nil {
		return err
	}
	if err := d.enter(tx, c, last, found); err != nil {
		return err
	}
	if stopped, err := d.stoppedBefore(tx, c); stopped || err != nil {
		return err
	}
	if c.task.Agent == envelope.Ourselves && c.row.State == task.Held {
		return d.askEach(tx, c, names)
	}
	return nil
}

// provedNow reports whether a request was refused for its sender before and has the
// secret of its sender now. Such a request is judged again.
func (d *Dispatcher) provedNow(c *claim, last task.Task) bool {
	return last.Hash == c.task.Hash && last.Status == envelope.Rejected && last.Kind == envelope.Unauthorized && !c.line.Replayed &&
		d.agents.Protocol.Secret(c.said.From) != ""
}

// enter adds the task that a message asks for, and remembers the message.
func (d *Dispatcher) enter(tx *transaction, c *claim, last task.Task, found bool) error {
	c.fate = accepted
	if err := d.revise(tx, c, last, found); err != nil {
		return err
	}
	if _, err := tx.Record(recordOf(*c.said, task.ByLine, c.row.Seq, c.now)); err != nil {
		return err
	}
	if !c.heard.degraded {
		return nil
	}
	return tx.Log(event(c.row, task.KindContextDegraded, map[string]any{"ref": c.said.Context.Ref}))
}

// hearAgain is for a request whose id is known: the same content is ignored, and
// any other is refused, in whatever dialect either was said.
func (d *Dispatcher) hearAgain(tx *transaction, c *claim, last task.Task) error {
	if last.Hash == c.task.Hash {
		return d.ignoreDuplicate(tx, c, last)
	}
	if c.fragment() {
		return d.deny(tx, c, c.verdict.Findings...)
	}
	c.row = last
	if ours, err := d.liesInInbox(tx, c, last); ours || err != nil {
		return err
	}
	c.fate = conflict
	if err := tx.Log(contradiction(c, last)); err != nil {
		return err
	}
	why := fmt.Sprintf("%s was asked for with other content before", last.ID)
	return d.complainTo(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
}

// ignoreDuplicate ignores a request that was taken in, or refused, with the same content before.
func (d *Dispatcher) ignoreDuplicate(tx *transaction, c *claim, last task.Task) error {
	c.row, c.fate = last, duplicate
	if c.line.Replayed {
		return nil
	}
	return tx.Log(event(last, task.KindTaskDuplicate, map[string]any{"file": c.line.File, "offset": c.line.Offset}))
}

// liesInInbox ignores a line that we put into the inbox of the agent of a task.
func (d *Dispatcher) liesInInbox(tx *transaction, c *claim, last task.Task) (bool, error) {
	if d.agents.Inbox(last.Agent).File == "" {
		return false, nil
	}
	raw, err := tx.Raw(last.Seq)
	if err != nil {
		return false, err
	}
	line, err := d.inboxLine(last, raw)
	if err != nil {
		return false, err
	}
	if hash, _ := envelope.ContentHash(line); hash != c.said.Hash {
		return false, nil
	}
	return true, tx.Log(event(task.Task{}, task.KindMessageOwn, map[string]any{"file": c.line.File, "offset": c.line.Offset}))
}

// premature is how long a message that cancels a request which has not come is
// remembered (CLOWL-27).
const premature = 10 * time.Minute

// stoppedBefore ends a request at once that was cancelled before it came.
func (d *Dispatcher) stoppedBefore(tx *transaction, c *claim) (bool, error) {
	cancels, err := tx.Replies(c.said.ID, envelope.Cancels, c.said.From, c.now.Add(-premature))
	if err != nil || len(cancels) == 0 || c.row.State == task.Done {
		return false, err
	}
	m := cancels[0]
	row, stopped, err := d.decideOn(tx, c.row.Seq, true, &core.Cancel{
		Task: c.row.Seq, Seen: core.See(c.row), By: core.By{Who: m.From, Reason: m.ID}, Request: c.task, Levels: c.verdict.Levels,
	})
	if stopped {
		c.row = row
	}
	return stopped, err
}
