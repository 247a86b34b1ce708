package core

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Accept adds the next revision of a task. The new revision replaces one that hasn't
// started, and waits behind one that is in hand (AINL-55).
type Accept struct {
	Request  envelope.Task
	Dialect  envelope.Dialect
	Verdict  task.Verdict
	File     string // the task file; "" for a task that an agent requested during a run
	Offset   int64
	Received time.Time
	Attempt  int      // the highest attempt that left traces
	Unknown  []string // run directories without a known run, in which the task may have begun
	Parent   *task.Task
	Result   []byte // the result if the verdict refuses the task; nil: Accept calls Refusal
	Rule     string // the delegation rule of the parent's agent; "" for none
}

// Accepted is the data of the event task.accepted.
type Accepted struct {
	File     string        `json:"file,omitzero"`
	Hash     string        `json:"hash"`
	Kid      string        `json:"kid,omitzero"` // of the key that verified the signature of the request
	Held     []task.Reason `json:"held,omitzero"`
	Offset   *int64        `json:"offset,omitzero"`
	Parent   envelope.ID   `json:"parent,omitzero"`
	Priority int           `json:"priority,omitzero"`
	Unknown  []string      `json:"unknown_runs,omitzero"`
	Warnings []string      `json:"warnings,omitzero"`
}

func (c *Accept) decide(d *decision) error {
	next := c.revision()
	next.Priority = c.priority(d.cfg.MaxPriority)
	last := d.state.Latest(c.Request.ID)
	waits := false
	if last != nil {
		next.Revision = last.Revision + 1
		waits = c.replaceEarlier(d, last, &next)
	}
	if waits {
		next.State, next.Reasons, next.Until = task.Received, slices.Concat(heldByOperator(last), recovered(c.Verdict.Hold)), time.Time{}
	}
	c.add(d, &Task{Task: next}, waits)
	return nil
}

// replaceEarlier sets the fields of the next revision that depend on earlier ones, ends the
// revisions that it replaces, and reports whether it has to wait for one that is in hand.
func (c *Accept) replaceEarlier(d *decision, last *Task, next *task.Task) (waits bool) {
	waits = d.behindEarlier(last)
	switch {
	case last.State == task.Done:
		next.Replaces = true
	case !InHand(last.Task, d.now):
		next.Replaces = last.Replaces
		if slices.Contains(last.Reasons, task.Operator) && c.Verdict.Admit { // the hold covers the id, also with new content
			v := Held(c.Verdict, task.Operator)
			next.State, next.Reasons, next.Until = task.Held, v.Hold, v.Until
		}
	}
	return waits
}

// add adds the revision, and its refusal if the verdict refuses it.
func (c *Accept) add(d *decision, next *Task, waits bool) {
	asks := WantsApproval(next.Reasons)
	if asks {
		next.Until = Earliest(next.Until, d.decisionDue(next.Task))
	}
	added := &Added{Task: next.Task}
	if next.State == task.Held {
		added.Waits = c.Verdict.Waits
	}
	d.add(next, added, task.KindTaskAccepted, c.data(next))
	if c.Parent != nil {
		data := map[string]any{"child": next.ID, "revision": next.Revision}
		if c.Rule != "" {
			data["rule"] = c.Rule // advisory text; no component enforces it (CAP-20)
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

// result returns the result of a refused task.
func (c *Accept) result(d *decision) []byte {
	if c.Result != nil {
		return c.Result
	}
	return Refusal(c.Request, c.Verdict, false, d.now)
}

// revision returns the task as the first revision of its id.
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

// priority returns the priority of the task: what it asks for, at most the limit. A task of a
// run that asks for none has that of the task above.
func (c *Accept) priority(limit int) int {
	priority, asked := c.Request.Priority()
	if !asked && c.Parent != nil {
		priority = c.Parent.Priority
	}
	return min(priority, limit)
}

func (c *Accept) data(next *Task) Accepted {
	data := Accepted{Hash: c.Request.Hash, Priority: next.Priority, Unknown: c.Unknown}
	if signed := c.Request.Clutch; signed.IsSigned() && signed.Auth.Verified {
		data.Kid = signed.Auth.KeyID
	}
	warnings := c.Verdict.Findings.Warnings()
	if priority, asked := c.Request.Priority(); asked && priority > next.Priority {
		warnings = append(slices.Clip(warnings), envelope.Finding{
			Field:   "metadata." + envelope.PriorityKey,
			Message: fmt.Sprintf("is %d, and limits.priority allows at most %d", priority, next.Priority),
		})
	}
	if len(warnings) > 0 {
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

// InHand reports whether a later revision has to wait for the task: its agent runs or has
// claimed it, an approver reviews its answer, or its answer is unread. A waiting task
// without a claim is replaced, although its line is in the agent's inbox.
func InHand(t task.Task, now time.Time) bool {
	return t.State == task.Running || t.State == task.Review || Unread(t) || t.ClaimedAt(now)
}

// Held adds hold reasons to a verdict that admits its task. An enforced deadline also
// applies while the task is held.
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

// HeldUntil is Held with one reason and the time when it ends.
func HeldUntil(v task.Verdict, reason task.Reason, until time.Time) task.Verdict {
	held := Held(v, reason)
	if held.Admit {
		held.Until = Earliest(held.Until, until)
	}
	return held
}

// heldByOperator returns the operator's hold if the revision before waits under one.
func heldByOperator(last *Task) []task.Reason {
	if last.State == task.Received && slices.Contains(last.Reasons, task.Operator) {
		return []task.Reason{task.Operator}
	}
	return nil
}

// recovered returns the reason Recovered if it is among the reasons.
func recovered(reasons []task.Reason) []task.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r task.Reason) bool { return r != task.Recovered })
}
