package policy

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Controls on the start time and on approvals.

// deadline: a task isn't started after its deadline, and a run ends with it (AINL-45).
func (q *question) deadline() envelope.Level {
	if q.Deadline.IsZero() {
		return notApplicable
	}
	if !q.now.Before(q.Deadline) {
		q.object(envelope.DeadlineExceeded, "deadline", q.Deadline.UTC().Format(time.RFC3339)+" is past")
	}
	if q.enforced() {
		q.verdict.Deadline = q.Deadline
	}
	return envelope.LevelDaemon
}

// changeWindow: a task starts only inside its change window (AINL-58). Before the window,
// it is held; if no window is left, it is refused.
func (q *question) changeWindow() envelope.Level {
	const field = "policy_context.change_window"
	if len(q.ChangeWindows) == 0 || matches(q.Type, q.rules.WindowExempt) {
		return notApplicable
	}
	var next time.Time
	for _, w := range q.ChangeWindows {
		switch {
		case !q.now.Before(w.Start) && q.now.Before(w.End):
			q.insideWindow(w)
			return envelope.LevelDaemon
		case q.now.Before(w.Start) && (q.verdict.Deadline.IsZero() || w.Start.Before(q.verdict.Deadline)):
			next = earliest(next, w.Start)
		}
	}
	if next.IsZero() {
		q.object(envelope.ChangeWindowMissed, field, "is over, or begins after the deadline")
		return envelope.LevelDaemon
	}
	q.hold(task.ChangeWindow, next, field, "has not begun")
	return envelope.LevelDaemon
}

// insideWindow asks for another verdict at the window's end, for a task that is still held then.
// It ends the run there too, if the agent's configuration says so.
func (q *question) insideWindow(w envelope.Window) {
	if !q.enforced() {
		return
	}
	q.judgeAgainAt(w.End)
	if q.agent.KillAtWindowEnd {
		q.verdict.Deadline = earliest(q.verdict.Deadline, w.End)
	}
}

// approval: the stricter of the request and the manifest decides when an approver must
// agree (AINL-17, AINL-48). The request can name the approver (AINL-49).
func (q *question) approval() envelope.Level {
	when := q.Approval
	if q.manifest.RequiresApproval(q.Type) {
		when = withPre(when)
	}
	if when == envelope.ApprovalNone {
		return notApplicable
	}
	if q.enforced() {
		q.verdict.Approval, q.verdict.Approver, q.verdict.Proof = when, q.HumanApprover, q.rules.proofOf(q.Task)
	}
	q.approver()
	switch {
	case when != envelope.ApprovalPost:
		q.hold(task.Approval, time.Time{}, "approval_required", "a person should approve this task")
	case !q.enforced():
		q.warn("approval_required", "a person should approve the result of this task")
	}
	return envelope.LevelDaemon
}

// approver warns of an approver who can't decide: the task would wait until its end
// (AINL-49).
func (q *question) approver() {
	switch name := q.HumanApprover; {
	case name == "":
	case name == q.Requester:
		q.warn("human_approver", fmt.Sprintf("%.250q is the requester, and another approver must decide", name))
	case q.rules.Approvers != nil && !slices.Contains(q.rules.Approvers, name):
		q.warn("human_approver", fmt.Sprintf("%.250q is not in approvers, so nobody can approve the task", name))
	}
}

// withPre adds the approval before a run.
func withPre(when envelope.Approval) envelope.Approval {
	if when == envelope.ApprovalPost || when == envelope.ApprovalBoth {
		return envelope.ApprovalBoth
	}
	return envelope.ApprovalPre
}

// executionMode: the actions that an advisory agent reports are judged after the run
// (AINL-15). Unreported actions are invisible.
func (q *question) executionMode() envelope.Level {
	if q.manifest.ExecutionMode != envelope.Advisory {
		return notApplicable
	}
	return envelope.LevelObserved
}
