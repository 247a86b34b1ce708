package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// wantsApproval reports whether a person has to agree before a task starts.
func wantsApproval(reasons []ledger.Reason) bool { return slices.Contains(reasons, ledger.Approval) }

// cleared reports whether a task may start: it is admitted, and nothing holds it
// but an approval that was given for exactly this.
func (d *Dispatcher) cleared(ctx context.Context, row ledger.Task, v Verdict) (bool, error) {
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
func covers(c ledger.Consent, v Verdict, ran bool, now time.Time) bool {
	return c.Decision == ledger.Approved && matches(c, v) && (ran || !late(c, now))
}

// matches reports whether a person was asked about what would happen now.
func matches(c ledger.Consent, v Verdict) bool {
	return c.Digest == v.Digest && c.Approver == v.Approver
}

// late reports whether the time of an approval is over.
func late(c ledger.Consent, now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// consult makes a verdict on a task that has not started take into account what
// a person said of it, and asks whom nobody has asked about what would happen
// now. The verdict it returns is held for approval, or is not, or refuses.
func (d *Dispatcher) consult(tx *ledger.Tx, row ledger.Task, v Verdict, ran bool, now time.Time) (Verdict, error) {
	if !wantsApproval(v.Hold) && !wantsApproval(row.Reasons) {
		return v, nil
	}
	last, asked, err := tx.Consent(row.Seq, envelope.ApprovalPre)
	if err != nil {
		return v, err
	}
	open := asked && last.Decision == ledger.Undecided
	given := asked && last.Decision == ledger.Approved
	switch {
	case open && (late(last, now) || v.Findings.Kind() == envelope.DeadlineExceeded):
		return refused(envelope.ApprovalExpired, unheard(last), v.Levels), conclude(tx, row, last, ledger.Expired, now, "nobody decided in time")
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
		err = conclude(tx, row, last, ledger.Expired, now, "the task was not started in time")
	case open || given:
		err = conclude(tx, row, last, ledger.Void, now, "what would be run is not what was asked about")
	}
	if err != nil {
		return v, err
	}
	v.Until = earliest(v.Until, d.decisionDue(row, now))
	return v, d.ask(tx, row, v, now)
}

// withoutApproval is a verdict for which a person has agreed.
func withoutApproval(v Verdict) Verdict {
	v.Hold = slices.DeleteFunc(slices.Clone(v.Hold), func(r ledger.Reason) bool { return r == ledger.Approval })
	if len(v.Hold) == 0 {
		v.Until = time.Time{}
	}
	return v
}

// unheard puts into words that nobody has said anything in time (AINL-48).
func unheard(c ledger.Consent) string {
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
func refused(kind envelope.Kind, why string, levels envelope.Levels) Verdict {
	return Verdict{
		Findings: envelope.Findings{{Kind: kind, Field: "approval_required", Message: why}},
		Terms:    ledger.Terms{Levels: levels},
	}
}

// decisionDue is until when a person can decide about a start who is asked now:
// for as long as the operator lets a question stand, and not past the task's
// deadline. Zero is for ever.
func (d *Dispatcher) decisionDue(row ledger.Task, now time.Time) time.Time {
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
func (d *Dispatcher) ask(tx *ledger.Tx, row ledger.Task, v Verdict, now time.Time) error {
	return question(tx, row, ledger.Consent{
		Stage: envelope.ApprovalPre, Digest: v.Digest, Plan: v.Plan, Approver: v.Approver,
		Asked: now, Expires: d.decisionDue(row, now),
	})
}

// question writes down what a person is asked.
func question(tx *ledger.Tx, row ledger.Task, c ledger.Consent) error {
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
	return tx.Log(event(row, "approval.asked", data))
}

// conclude ends an approval without a person: it is too old, or void.
func conclude(tx *ledger.Tx, row ledger.Task, c ledger.Consent, to ledger.Decision, now time.Time, why string) error {
	from := c.Decision
	c.Decision, c.Decided, c.Note = to, now, why
	if decided, err := tx.Decide(from, c); err != nil || !decided {
		return err
	}
	return tx.Log(event(row, "approval."+string(to), with(about(c), "reason", why)))
}

// withdraw takes back what a person was asked about a task, if they have not
// said anything yet.
func withdraw(tx *ledger.Tx, row ledger.Task, now time.Time, why string) error {
	if row.State != ledger.Held && row.State != ledger.Review {
		return nil
	}
	c, asked, err := openQuestion(tx, row)
	if err != nil || !asked {
		return err
	}
	return conclude(tx, row, c, ledger.Void, now, why)
}

// openQuestion returns what a person is asked about a task, if they are and have not
// said anything yet.
func openQuestion(tx *ledger.Tx, row ledger.Task) (ledger.Consent, bool, error) {
	c, asked, err := tx.Consent(row.Seq, stageOf(row))
	return c, asked && c.Decision == ledger.Undecided, err
}

// stageOf is what an approval of a task that waits for one would be of.
func stageOf(row ledger.Task) envelope.Approval {
	if row.State == ledger.Review {
		return envelope.ApprovalPost
	}
	return envelope.ApprovalPre
}

// about is what an event says of an approval, whatever happens to it.
func about(c ledger.Consent) map[string]any {
	return map[string]any{"stage": c.Stage, "digest": c.Digest[:min(12, len(c.Digest))]}
}

// earliest returns the earlier of two instants; zero is no instant.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
