package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Judge applies a verdict to a task that hasn't started: it queues, holds or ends the task.
// A task that has changed since the verdict keeps its state.
type Judge struct {
	Task    int64
	Seen    Seen
	Request envelope.Task
	Verdict task.Verdict
}

func (c *Judge) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || !Startable(t.State) {
		return ErrStale
	}
	if t.State == task.Received && !d.clear(t) {
		return nil // judged when the earlier one has ended
	}
	d.obey(t, c.Request, c.Verdict)
	return nil
}

// obey moves a task to the state that a verdict requires.
func (d *decision) obey(t *Task, request envelope.Task, verdict task.Verdict) {
	switch v := d.consult(t, verdict); {
	case !v.Admit:
		d.reject(t, request, v)
	case len(v.Hold) > 0:
		d.hold(t, v.Hold, v.Until, v.Waits...)
	default:
		d.add(t, moved(t, task.Change{To: task.Queued}), task.KindTaskQueued, nil)
	}
}

// clear supersedes earlier revisions that went back to waiting after this one was accepted.
// It reports whether none of them is in hand.
func (d *decision) clear(t *Task) bool {
	free := true
	for _, earlier := range d.state.ids[t.ID] {
		switch {
		case earlier.Revision >= t.Revision || earlier.State == task.Done:
		case InHand(earlier.Task, d.now):
			free = false
		default:
			d.supersede(earlier)
		}
	}
	return free
}

// consult combines a verdict with the approval of the start, and requests an approval if
// none was requested. The returned verdict is held for the approval, admits or refuses.
func (d *decision) consult(t *Task, v task.Verdict) task.Verdict {
	if !WantsApproval(v.Hold) && !WantsApproval(t.Reasons) {
		return v
	}
	last := t.Start
	open, given := isOpen(last), isGiven(last)
	switch {
	case open && (expired(last, d.now) || v.Findings.Kind() == envelope.DeadlineExceeded):
		d.conclude(t, last, task.Expired, "nobody decided in time")
		return refused(envelope.ApprovalExpired, undecided(last), v.Levels)
	case !v.Admit:
		d.withdraw(t, "the task is refused")
		return v
	case !WantsApproval(v.Hold):
		d.withdraw(t, "no approval is needed any more")
		return v
	case open && matches(last, v):
		v.Until = Earliest(v.Until, last.Expires)
		return v
	case given && Covers(last, v, t.Began, d.now):
		return withoutApproval(v)
	case given && matches(last, v) && whyUnproven(last, v) != "":
		d.conclude(t, last, task.Void, whyUnproven(last, v))
	case given && matches(last, v):
		d.conclude(t, last, task.Expired, "the task was not started in time")
	case open || given:
		d.conclude(t, last, task.Void, whyChanged(last, v))
	}
	v.Until = Earliest(v.Until, d.decisionDue(t.Task))
	d.askStart(t, v)
	return v
}

// whyChanged says why an approval, or a question about one, doesn't cover a verdict.
func whyChanged(asked *task.Consent, v task.Verdict) string {
	difference := task.Difference(asked.Plan, v.Plan)
	switch {
	case task.HasFormat(v.Plan) && !task.HasFormat(asked.Plan):
		return "an earlier version of mailboxd asked, and did not cover the content of the program"
	case difference != "":
		return "what would be run has changed: " + difference
	}
	return "what would be run has changed since it was asked about"
}

// hold holds a task. It shows an event only if the reasons are new.
func (d *decision) hold(t *Task, reasons []task.Reason, until time.Time, waits ...task.Wait) {
	change := moved(t, task.Change{To: task.Held, Reasons: reasons, Until: until, Waits: waits})
	if t.State == task.Held && slices.Equal(t.Reasons, reasons) {
		d.add(t, change, "", nil)
		return
	}
	d.add(t, change, task.KindTaskHeld, map[string]any{"reasons": reasons})
}

// reject ends a task that a verdict doesn't admit.
func (d *decision) reject(t *Task, request envelope.Task, v task.Verdict) {
	d.rejectWith(t, v, Refusal(request, v, t.Began, d.now))
}

func (d *decision) rejectWith(t *Task, v task.Verdict, result []byte) {
	if v.Routing != nil {
		d.show(t, task.KindRoutingFailed, v.Routing)
	}
	change := task.Change{To: task.Done, Status: refusalStatus(t.Began), Kind: v.Findings.Kind(), Result: result}
	d.add(t, moved(t, change), task.KindTaskRejected, map[string]any{"reasons": v.Findings.Refusals().Words()})
}

// refused returns the verdict on a task whose start an approver refused. The levels still
// apply.
func refused(kind envelope.Kind, why string, levels envelope.Levels) task.Verdict {
	return task.Verdict{
		Findings: envelope.Findings{{Kind: kind, Field: "approval_required", Message: why}},
		Terms:    task.Terms{Levels: levels},
	}
}

// withoutApproval removes the approval from the hold reasons of a verdict.
func withoutApproval(v task.Verdict) task.Verdict {
	v.Hold = slices.DeleteFunc(slices.Clone(v.Hold), func(r task.Reason) bool { return r == task.Approval })
	return v
}
