package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// reviewed reports whether a person has to agree before an outcome is shown:
// when the task's terms say so, and an agent may have had a part in it.
func reviewed(terms task.Terms, o task.Outcome) bool {
	nobodyRan := o.Result.Status == envelope.Rejected && o.Exit.Started.IsZero() && o.Exit.Cause != task.CauseLost
	return afterRun(terms) && !nobodyRan
}

// afterRun reports whether a person has to agree to an answer.
func afterRun(terms task.Terms) bool {
	return terms.Approval == envelope.ApprovalPost || terms.Approval == envelope.ApprovalBoth
}

// askAfter asks a person to agree that a result is shown. The deadline of the
// task is for its run, and a review may outlive it: only the time that a
// question stands counts.
func (d *Dispatcher) askAfter(tx *ledger.Tx, row task.Task, terms task.Terms, c task.Change) error {
	sum := sha256.Sum256(c.Result)
	return question(tx, row, task.Consent{
		Stage: envelope.ApprovalPost, Digest: hex.EncodeToString(sum[:]), Approver: terms.Approver,
		Asked: time.Now(), Expires: c.Until,
	})
}

// reconsiderReview ends a review of which nobody has said anything in time. A
// result file that somebody placed is moved away first: it is not taken for the
// answer, or an agent could do without the review (AINL-85), and the answer itself
// is not shown before somebody agreed.
func (d *Dispatcher) reconsiderReview(ctx context.Context, row task.Task) error {
	if d.Box.HasResult(row.ID) {
		if err := d.guard(ctx, row); err != nil {
			return err
		}
	}
	if overseen, err := d.reconsiderOversight(ctx, row); overseen || err != nil {
		return err
	}
	now := time.Now()
	if !past(row.Until, now) {
		d.alarms.set(row.Seq, row.Until)
		return nil
	}
	q, err := d.about(ctx, row)
	if err != nil {
		return err
	}
	next, moved := row, false
	err = d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		next, moved = row, false
		c, asked, err := openQuestion(tx, row)
		if err != nil || !asked || !late(c, now) { // the time that is over may have been an overseer's
			return err
		}
		if err := conclude(tx, row, c, task.Expired, now, "nobody decided in time"); err != nil {
			return err
		}
		next, moved, err = d.endReview(tx, row, q, task.Expired, envelope.ApprovalExpired, unheard(c))
		return err
	})
	if err == nil && moved {
		d.proceed(ctx, next)
	}
	return err
}

// endReview ends a task in review: with the result it has when a person agreed,
// and else with one that says why that is not shown.
func (d *Dispatcher) endReview(tx *ledger.Tx, row task.Task, q matter, to task.Decision, kind envelope.Kind, why string) (task.Task, bool, error) {
	change := task.Change{To: task.Done}
	if to != task.Approved {
		change.Status, change.Kind = envelope.Failed, kind
		change.Result = withheld(q, change.Status, kind, why)
	}
	moved, err := tx.Move(row.Seq, task.Review, row.Attempt, change)
	if err != nil || !moved {
		return row, false, err
	}
	row.State, row.Until = task.Done, time.Time{}
	if to != task.Approved {
		row.Status, row.Kind = change.Status, change.Kind
	}
	return row, true, nil
}

// withheld is the result of a task whose answer is not to be shown. What the
// run cost, when it was and who held what stays, for that is ours to say.
func withheld(q matter, status envelope.Status, kind envelope.Kind, why string) []byte {
	was, _ := envelope.DecodeResult(q.result)
	r := envelope.Result{
		TaskID: q.task.ID, AgentID: q.task.Agent, Status: status,
		Output:     envelope.Output{Summary: "The agent's answer is not shown: " + why, Enforcement: was.Output.Enforcement},
		Cost:       was.Cost,
		Time:       was.Time,
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: was.Provenance,
	}
	return r.Encode()
}
