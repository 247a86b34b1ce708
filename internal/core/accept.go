package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// Accept adds the next revision of a task. It replaces a revision that hasn't started,
// and waits behind one that is in hand (AINL-55).
type Accept struct {
	Request  envelope.Task
	Dialect  envelope.Dialect
	Verdict  task.Verdict
	File     string // the task file; "" for what an agent asked for in its run
	Offset   int64
	Received time.Time
	Attempt  int      // the highest attempt of which there are traces already
	Unknown  []string // run directories in which the task may have begun, and that nobody knows
	Parent   *task.Task
	Result   []byte // the answer to a task that the verdict refuses; nil: as Refusal makes it
	Rule     string // by which the parent's agent hands work to this one's; "" for none
}

// Accepted is the data of the event task.accepted.
type Accepted struct {
	File     string        `json:"file,omitzero"`
	Hash     string        `json:"hash"`
	Held     []task.Reason `json:"held,omitzero"`
	Offset   *int64        `json:"offset,omitzero"`
	Parent   envelope.ID   `json:"parent,omitzero"`
	Unknown  []string      `json:"unknown_runs,omitzero"`
	Warnings []string      `json:"warnings,omitzero"`
}

func (c *Accept) decide(d *decision) error {
	next := c.revision()
	last := d.state.Latest(c.Request.ID)
	waits := false
	if last != nil {
		next.Revision = last.Revision + 1
		waits = c.behind(d, last, &next)
	}
	if waits {
		next.State, next.Reasons, next.Until = task.Received, slices.Concat(heldByOperator(last), recovered(c.Verdict.Hold)), time.Time{}
	}
	c.add(d, &Task{Task: next}, waits)
	return nil
}

// behind fits the next revision to those before, and reports whether it has to wait for
// one that is in hand. All others that aren't over it replaces.
func (c *Accept) behind(d *decision, last *Task, next *task.Task) (waits bool) {
	waits = d.behindEarlier(last)
	switch {
	case last.State == task.Done:
		next.Replaces = true
	case !InHand(last.Task, d.now):
		next.Replaces = last.Replaces
		if slices.Contains(last.Reasons, task.Operator) && c.Verdict.Admit { // the id is held, whatever it asks for
			v := Held(c.Verdict, task.Operator)
			next.State, next.Reasons, next.Until = task.Held, v.Hold, v.Until
		}
	}
	return waits
}

// add adds the revision, and at once its refusal if it has one.
func (c *Accept) add(d *decision, next *Task, waits bool) {
	asks := wantsApproval(next.Reasons)
	if asks {
		next.Until = Earliest(next.Until, d.decisionDue(next.Task))
	}
	d.add(next, &Added{Task: next.Task}, task.KindTaskAccepted, c.data(next))
	if c.Parent != nil {
		data := map[string]any{"child": next.ID, "revision": next.Revision}
		if c.Rule != "" {
			data["rule"] = c.Rule // which is words, and enforced by nobody (CAP-20)
		}
		d.show(&Task{Task: *c.Parent}, task.KindTaskDelegated, data)
	}
	switch {
	case asks:
		d.askStart(next, c.Verdict)
	case !waits && !c.Verdict.Admit:
		d.rejectWith(next, c.Verdict, c.result(d))
	}
}

// result is the answer to a task that is refused.
func (c *Accept) result(d *decision) []byte {
	if c.Result != nil {
		return c.Result
	}
	return Refusal(c.Request, c.Verdict, false, d.now)
}

// revision is the task as the first one of its id.
func (c *Accept) revision() task.Task {
	r, v := c.Request, c.Verdict
	next := task.Task{
		Seq: New, ID: r.ID, Revision: 1, Latest: true, Hash: r.Hash, Dialect: c.Dialect,
		State: task.Received, Attempt: c.Attempt,
		Agent: r.Agent, Requester: r.Requester, Type: r.Type,
		Deadline: r.Deadline, Received: c.Received, File: c.File, Offset: c.Offset,
	}
	if c.Parent != nil {
		next.Parent, next.Depth = c.Parent.Seq, c.Parent.Depth+1
	}
	switch {
	case !v.Admit:
	case len(v.Hold) > 0:
		next.State, next.Reasons, next.Until = task.Held, v.Hold, v.Until
	default:
		next.State = task.Queued
	}
	return next
}

func (c *Accept) data(next *Task) Accepted {
	data := Accepted{Hash: c.Request.Hash, Unknown: c.Unknown}
	if warnings := c.Verdict.Findings.Warnings(); len(warnings) > 0 {
		data.Warnings = warnings.Words()
	}
	if c.File != "" {
		data.File, data.Offset = c.File, &c.Offset
	}
	if c.Parent != nil {
		data.Parent = c.Parent.ID
	}
	if next.State == task.Held {
		data.Held = next.Reasons
	}
	return data
}

// InHand reports whether somebody has a task, so that a later revision has to wait: its
// agent, or a person who is to agree to the answer, or to have it read. A task that
// waits and that no program has claimed is replaced, although its line is in the inbox.
func InHand(t task.Task, now time.Time) bool {
	return t.State == task.Running || t.State == task.Review || Unread(t) || t.ClaimedAt(now)
}

// Held adds reasons for a hold to a verdict that admits its task. A deadline that is
// enforced is looked after also while the task waits for a person.
func Held(v task.Verdict, reasons ...task.Reason) task.Verdict {
	if !v.Admit || len(reasons) == 0 {
		return v
	}
	if len(v.Hold) == 0 {
		v.Until = v.Deadline
	}
	v.Hold = slices.Clone(v.Hold)
	for _, r := range reasons {
		if !slices.Contains(v.Hold, r) {
			v.Hold = append(v.Hold, r)
		}
	}
	return v
}

// heldByOperator is an operator's hold, if the revision before waits under one.
func heldByOperator(last *Task) []task.Reason {
	if last.State == task.Received && slices.Contains(last.Reasons, task.Operator) {
		return []task.Reason{task.Operator}
	}
	return nil
}

// recovered is the hold of what may have run before, if it is among some reasons.
func recovered(reasons []task.Reason) []task.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r task.Reason) bool { return r != task.Recovered })
}
