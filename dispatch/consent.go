package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
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
	last, asked, err := d.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPre)
	if err != nil || !asked || len(v.Hold) > 1 {
		return false, err
	}
	began := false
	if row.Attempt > 0 {
		began, err = d.ran(ctx, row)
	}
	return core.Covers(&last, v, began, time.Now()), err
}

// expiry is when what a person is asked, or says, now is too old.
func (d *Dispatcher) expiry(now time.Time) time.Time {
	ttl := d.agents.ApprovalTTL()
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
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
