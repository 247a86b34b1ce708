package policy

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A question is a task in front of the rules, with the verdict as far as it
// is known. Each control is a method that looks at its own fields.
type question struct {
	envelope.Task
	agent    *Subject
	manifest *envelope.Manifest // never nil
	rules    Rules
	now      time.Time
	mode     envelope.Mode // of the control that is being judged, never Off
	verdict  task.Verdict
}

// enforced reports whether the control that is being judged binds.
func (q *question) enforced() bool { return q.mode == envelope.Enforce }

// object refuses the task, or warns, as the control's mode says.
func (q *question) object(kind envelope.Kind, field, message string) {
	if !q.enforced() {
		kind = ""
	}
	q.verdict.Findings = append(q.verdict.Findings, envelope.Finding{Kind: kind, Field: field, Message: message})
}

// warn says something that does not refuse the task in any mode.
func (q *question) warn(field, message string) {
	q.verdict.Findings = append(q.verdict.Findings, envelope.Finding{Field: field, Message: message})
}

// hold makes the task wait for a reason until an instant at the latest, or
// warns, as the control's mode says.
func (q *question) hold(reason task.Reason, until time.Time, field, message string) {
	if !q.enforced() {
		q.warn(field, message)
		return
	}
	q.verdict.Hold = append(q.verdict.Hold, reason)
	q.lookAgain(until)
}

// lookAgain asks for another verdict at an instant, if the task is held then.
func (q *question) lookAgain(at time.Time) { q.verdict.Until = earliest(q.verdict.Until, at) }

// note remembers who holds a control. One that only warns is held by nobody
// but the agent's good will.
func (q *question) note(control envelope.Control, level envelope.Level) {
	if level == nobody {
		return
	}
	if !q.enforced() {
		level = envelope.LevelAdvisory
	}
	if q.verdict.Levels == nil {
		q.verdict.Levels = envelope.Levels{}
	}
	q.verdict.Levels[control] = level
}

// answer is the verdict when every control was judged.
func (q *question) answer() task.Verdict {
	v := q.verdict
	if v.Findings.Refused() {
		return task.Verdict{Findings: v.Findings, Terms: task.Terms{Levels: v.Levels}}
	}
	v.Until = earliest(v.Until, v.Deadline)
	if len(v.Hold) == 0 {
		v.Until = time.Time{}
	}
	return v
}

// earliest returns the earlier of two instants; zero is no instant.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
