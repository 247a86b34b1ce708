package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// wantsApproval reports whether a person has to agree before a task starts.
func wantsApproval(reasons []task.Reason) bool { return slices.Contains(reasons, task.Approval) }

// cleared reports whether a task may start: it is admitted, and nothing holds it
// but an approval that was given for exactly this.
func (d *Dispatcher) cleared(ctx context.Context, row task.Task, v task.Verdict) (bool, error) {
	if !v.Admit || !wantsApproval(v.Hold) {
		return v.Admit && len(v.Hold) == 0, nil
	}
	last, _, err := d.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPre)
	if err != nil || len(v.Hold) > 1 {
		return false, err
	}
	ran := false
	if row.Attempt > 0 {
		ran, err = d.ran(ctx, row)
	}
	return covers(last, v, ran, time.Now()), err
}

// covers reports whether an approval was given for what would happen now. Once
// an attempt was begun under it, it does for all further ones, however late.
func covers(c task.Consent, v task.Verdict, ran bool, now time.Time) bool {
	return c.Decision == task.Approved && matches(c, v) && (ran || !late(c, now))
}

// matches reports whether a person was asked about what would happen now.
func matches(c task.Consent, v task.Verdict) bool {
	return c.Digest == v.Digest && c.Approver == v.Approver
}

// late reports whether the time of an approval is over.
func late(c task.Consent, now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// consult makes a verdict on a task that has not started take into account what
// a person said of it, and asks whom nobody has asked about what would happen
// now. The verdict it returns is held for approval, or is not, or refuses.
func (d *Dispatcher) consult(tx *ledger.Tx, row task.Task, v task.Verdict, ran bool, now time.Time) (task.Verdict, error) {
	if !wantsApproval(v.Hold) && !wantsApproval(row.Reasons) {
		return v, nil
	}
	last, asked, err := tx.Consent(row.Seq, envelope.ApprovalPre)
	if err != nil {
		return v, err
	}
	open := asked && last.Decision == task.Undecided
	given := asked && last.Decision == task.Approved
	switch {
	case open && (late(last, now) || v.Findings.Kind() == envelope.DeadlineExceeded):
		return refused(envelope.ApprovalExpired, unheard(last), v.Levels), conclude(tx, row, last, task.Expired, now, "nobody decided in time")
	case !v.Admit:
		return v, withdraw(tx, row, now, "the task is refused")
	case !wantsApproval(v.Hold):
		return v, withdraw(tx, row, now, "no approval is needed any more")
	case open && matches(last, v):
		v.Until = earliest(v.Until, last.Expires)
		return v, nil
	case given && covers(last, v, ran, now):
		return withoutApproval(v), nil
	case given && matches(last, v):
		err = conclude(tx, row, last, task.Expired, now, "the task was not started in time")
	case open || given:
		err = conclude(tx, row, last, task.Void, now, "what would be run is not what was asked about")
	}
	if err != nil {
		return v, err
	}
	v.Until = earliest(v.Until, d.decisionDue(row, now))
	return v, d.ask(tx, row, v, now)
}

// withoutApproval is a verdict for which a person has agreed.
func withoutApproval(v task.Verdict) task.Verdict {
	v.Hold = slices.DeleteFunc(slices.Clone(v.Hold), func(r task.Reason) bool { return r == task.Approval })
	if len(v.Hold) == 0 {
		v.Until = time.Time{}
	}
	return v
}

// unheard puts into words that nobody has said anything in time (AINL-48).
func unheard(c task.Consent) string {
	why := "nobody approved it"
	if c.Approver != "" {
		why = c.Approver + " did not approve it"
	}
	if !c.Expires.IsZero() {
		why += " by " + c.Expires.Format(time.RFC3339)
	}
	return why
}

// refused is the verdict on a task that a person did not let start. Who held
// what until then is still so.
func refused(kind envelope.Kind, why string, levels envelope.Levels) task.Verdict {
	return task.Verdict{
		Findings: envelope.Findings{{Kind: kind, Field: "approval_required", Message: why}},
		Terms:    task.Terms{Levels: levels},
	}
}

// decisionDue is until when a person can decide about a start who is asked now:
// for as long as the operator lets a question stand, and not past the task's
// deadline. Zero is for ever.
func (d *Dispatcher) decisionDue(row task.Task, now time.Time) time.Time {
	return earliest(d.expiry(now), row.Deadline)
}

// expiry is when what a person is asked, or says, now is too old.
func (d *Dispatcher) expiry(now time.Time) time.Time {
	ttl := d.agents.ApprovalTTL()
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}

// ask asks a person to agree to what a verdict wants to start.
func (d *Dispatcher) ask(tx *ledger.Tx, row task.Task, v task.Verdict, now time.Time) error {
	return question(tx, row, task.Consent{
		Stage: envelope.ApprovalPre, Digest: v.Digest, Plan: v.Plan, Approver: v.Approver,
		Asked: now, Expires: d.decisionDue(row, now),
	})
}

// question writes down what a person is asked.
func question(tx *ledger.Tx, row task.Task, c task.Consent) error {
	c.Task = row.Seq
	if err := tx.Ask(c); err != nil {
		return err
	}
	data := about(c)
	if c.Approver != "" {
		data["approver"] = c.Approver
	}
	if !c.Expires.IsZero() {
		data["until"] = c.Expires.UTC().Format(time.RFC3339Nano)
	}
	return tx.Log(event(row, task.KindApprovalAsked, data))
}

// decided are the events with which an approval is over.
var decided = map[task.Decision]task.Kind{
	task.Approved: task.KindApprovalApproved,
	task.Denied:   task.KindApprovalDenied,
	task.Expired:  task.KindApprovalExpired,
	task.Void:     task.KindApprovalVoid,
}

// conclude ends an approval without a person: it is too old, or void.
func conclude(tx *ledger.Tx, row task.Task, c task.Consent, to task.Decision, now time.Time, why string) error {
	from := c.Decision
	c.Decision, c.Decided, c.Note = to, now, why
	if decided, err := tx.Decide(from, c); err != nil || !decided {
		return err
	}
	return tx.Log(event(row, decided[to], with(about(c), "reason", why)))
}

// withdraw takes back what a person was asked about a task, if they have not
// said anything yet.
func withdraw(tx *ledger.Tx, row task.Task, now time.Time, why string) error {
	if row.State != task.Held && row.State != task.Review {
		return nil
	}
	c, asked, err := openQuestion(tx, row)
	if err != nil || !asked {
		return err
	}
	return conclude(tx, row, c, task.Void, now, why)
}

// openQuestion returns what a person is asked about a task, if they are and have not
// said anything yet.
func openQuestion(tx *ledger.Tx, row task.Task) (task.Consent, bool, error) {
	c, asked, err := tx.Consent(row.Seq, stageOf(row))
	return c, asked && c.Decision == task.Undecided, err
}

// stageOf is what an approval of a task that waits for one would be of.
func stageOf(row task.Task) envelope.Approval {
	if row.State == task.Review {
		return envelope.ApprovalPost
	}
	return envelope.ApprovalPre
}

// about is what an event says of an approval, whatever happens to it.
func about(c task.Consent) map[string]any {
	return map[string]any{"stage": c.Stage, "digest": c.Digest[:min(12, len(c.Digest))]}
}

// earliest returns the earlier of two instants; zero is no instant.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
