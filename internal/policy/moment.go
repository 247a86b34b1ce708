package policy

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// When a task may begin, and who must agree.

// deadline: a task that is too late is not begun, and what has begun ends with
// it (AINL-45).
func (q *question) deadline() envelope.Level {
	if q.Deadline.IsZero() {
		return nobody
	}
	if !q.now.Before(q.Deadline) {
		q.object(envelope.DeadlineExceeded, "deadline", q.Deadline.UTC().Format(time.RFC3339)+" is past")
	}
	if q.enforced() {
		q.verdict.Deadline = q.Deadline
	}
	return envelope.LevelDaemon
}

// changeWindow: a task begins only inside its change window (AINL-58). Before
// it, the task is held; when no window can be reached any more, it is refused.
func (q *question) changeWindow() envelope.Level {
	const field = "policy_context.change_window"
	if len(q.ChangeWindows) == 0 || matches(q.Type, q.rules.WindowExempt) {
		return nobody
	}
	var next time.Time
	for _, w := range q.ChangeWindows {
		switch {
		case !q.now.Before(w.Start) && q.now.Before(w.End):
			q.inside(w)
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

// inside looks again at the window's end, in case something else holds the
// task so long, and ends its run then if the agent's runs are to end so.
func (q *question) inside(w envelope.Window) {
	if !q.enforced() {
		return
	}
	q.lookAgain(w.End)
	if q.agent.KillAtWindowEnd {
		q.verdict.Deadline = earliest(q.verdict.Deadline, w.End)
	}
}

// approval: what a person must agree to waits for one, for the stricter of
// what the request and the manifest ask for (AINL-17, AINL-48). The request
// names who it must be (AINL-49).
func (q *question) approval() envelope.Level {
	when := q.Approval
	if q.manifest.RequiresApproval(q.Type) {
		when = withPre(when)
	}
	if when == envelope.ApprovalNone {
		return nobody
	}
	if q.enforced() {
		q.verdict.Approval, q.verdict.Approver = when, q.HumanApprover
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

// approver warns of somebody who will not decide: then it waits until it is too
// late (AINL-49).
func (q *question) approver() {
	switch name := q.HumanApprover; {
	case name == "":
	case name == q.Requester:
		q.warn("human_approver", fmt.Sprintf("%.250q asks for it, and nobody approves their own task", name))
	case q.rules.Approvers != nil && !slices.Contains(q.rules.Approvers, name):
		q.warn("human_approver", fmt.Sprintf("%.250q is no approver here, so nobody can agree until one has this name", name))
	}
}

// withPre adds the approval before a run to another.
func withPre(when envelope.Approval) envelope.Approval {
	if when == envelope.ApprovalPost || when == envelope.ApprovalBoth {
		return envelope.ApprovalBoth
	}
	return envelope.ApprovalPre
}

// executionMode: what an advisor reports to have done is judged after the run
// (AINL-15); nobody sees what it does not report.
func (q *question) executionMode() envelope.Level {
	if q.manifest.ExecutionMode != envelope.Advisory {
		return nobody
	}
	return envelope.LevelObserved
}
