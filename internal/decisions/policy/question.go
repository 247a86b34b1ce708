package policy

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A question collects the verdict on a task. Each control is a method that checks its own
// fields.
type question struct {
	envelope.Task
	agent    *Subject
	manifest *envelope.Manifest // never nil
	rules    Rules
	now      time.Time
	mode     envelope.Mode // of the current control; never Off
	verdict  task.Verdict
}

// enforced reports whether the current control is enforced.
func (q *question) enforced() bool { return q.mode == envelope.Enforce }

// object refuses the task or warns, as the control's mode says.
func (q *question) object(kind envelope.Kind, field, message string) {
	if !q.enforced() {
		kind = ""
	}
	q.verdict.Findings = append(q.verdict.Findings, envelope.Finding{Kind: kind, Field: field, Message: message})
}

// warn adds a warning in any mode.
func (q *question) warn(field, message string) {
	q.verdict.Findings = append(q.verdict.Findings, envelope.Finding{Field: field, Message: message})
}

// hold holds the task for a reason until a time at the latest, or warns, as the control's
// mode says.
func (q *question) hold(reason task.Reason, until time.Time, field, message string) {
	if !q.enforced() {
		q.warn(field, message)
		return
	}
	q.verdict.Hold = append(q.verdict.Hold, reason)
	q.judgeAgainAt(until)
}

// judgeAgainAt requests another verdict at a time, if the task is held then.
func (q *question) judgeAgainAt(at time.Time) { q.verdict.Until = earliest(q.verdict.Until, at) }

// setLevel records the level of a control. A control that only warns is advisory.
func (q *question) setLevel(control envelope.Control, level envelope.Level) {
	if level == notApplicable {
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

// answer returns the verdict after all controls.
func (q *question) answer() task.Verdict {
	v := q.verdict
	if v.Findings.Refused() {
		return task.Verdict{Findings: v.Findings, Terms: task.Terms{Levels: v.Levels, Proof: v.Proof}}
	}
	v.Until = earliest(v.Until, v.Deadline)
	if len(v.Hold) == 0 {
		v.Until = time.Time{}
	}
	return v
}

// earliest returns the earlier of two times; zero means no time.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
