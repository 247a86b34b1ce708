package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Why a decision does not count any more.
var (
	ErrTooLate = errors.New("the time to decide about it is over")
	ErrChanged = errors.New("what would be run has changed since it was asked about; it is asked about again")
)

// Approve lets a task go on that waits for a person: one that is held for
// approval starts when nothing else holds it, and the result of one in review
// is shown. The approval is bound to what was asked about; it is void when
// anything of that changes, and too old when the task did not start within the
// time that a question stands. Who may not decide is a *ForbiddenError, and
// the attempt an event. A task that waits for nobody is a *StateError; an id
// that is not known wraps ledger.ErrUnknown.
func (d *Dispatcher) Approve(ctx context.Context, id envelope.ID, who Person, note string) error {
	return d.decide(ctx, "approve", id, answer{task.Approved, who, note})
}

// Deny ends a task that waits for a person as approval_denied: rejected when no
// agent ran, and otherwise in error, without the answer of its agent, which
// stays in its run directory and the ledger. Its errors are those of Approve.
func (d *Dispatcher) Deny(ctx context.Context, id envelope.ID, who Person, reason string) error {
	return d.decide(ctx, "deny", id, answer{task.Denied, who, reason})
}

// RefuseApproval remembers that somebody tried to decide whom nobody asks, such
// as a process that belongs to a run.
func (d *Dispatcher) RefuseApproval(ctx context.Context, id envelope.ID, who, why string) error {
	err := d.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = d.newest(ctx, id)
	}
	if err == nil {
		err = d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
			return tx.Log(event(row, task.KindApprovalRefused, map[string]any{"by": who, "reason": why}))
		})
	}
	if err != nil {
		return fmt.Errorf("refuse approval of %s: %w", id, err)
	}
	d.log(row).Warn().Str("by", who).Str("reason", why).Msg("approval refused")
	return nil
}

// An answer is what a person says to what they were asked.
type answer struct {
	to   task.Decision
	who  Person
	note string
}

// as is the name under which a person decides what asks for an approver.
func (a answer) as(approver string) string {
	if approver != "" {
		return approver
	}
	return a.who.String()
}

func (d *Dispatcher) decide(ctx context.Context, verb string, id envelope.ID, a answer) error {
	err := d.whenReady(ctx)
	for moved := false; err == nil && !moved; {
		var row task.Task
		if row, err = d.undecided(ctx, id); err == nil && row.State == task.Held {
			_, err = d.foreign(ctx, row) // a result file from before the approval is not taken for the answer after it
		}
		if err == nil {
			row, moved, err = d.decideOne(ctx, row, a)
		}
		if moved {
			fault.Point("approved")
			d.log(row).Info().Stringer("by", a.who).Str("decision", string(a.to)).Msg("approval decided")
			d.proceedNow(context.WithoutCancel(ctx), row)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return nil
}

// undecided returns the revision of a task that waits for a person.
func (d *Dispatcher) undecided(ctx context.Context, id envelope.ID) (task.Task, error) {
	revisions, err := d.revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	for _, row := range slices.Backward(revisions) {
		if row.State == task.Review || row.State == task.Held && wantsApproval(row.Reasons) {
			return row, nil
		}
	}
	return task.Task{}, stateError(revisions[len(revisions)-1])
}

// decideOne has a person decide about one revision, and returns it as it is
// then. It reports false when somebody moved the task meanwhile.
func (d *Dispatcher) decideOne(ctx context.Context, row task.Task, a answer) (task.Task, bool, error) {
	q, err := d.about(ctx, row)
	if err != nil {
		return row, false, err
	}
	next, moved, forbidden := row, false, ""
	err = d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		next, moved, forbidden = row, false, ""
		if same, err := unmoved(tx, row); err != nil || !same {
			return err
		}
		now := time.Now()
		c, asked, err := openQuestion(tx, row)
		if err == nil && !asked {
			err = stateError(row)
		}
		if err != nil {
			return err
		}
		if forbidden = a.who.forbidden(row, c.Approver); forbidden != "" {
			return tx.Log(event(row, task.KindApprovalRefused, map[string]any{"by": a.who.String(), "uid": a.who.UID, "reason": forbidden}))
		}
		if err := q.standing(row, c, now); err != nil {
			return err
		}
		next, moved, err = d.record(tx, row, q, c, a, now)
		return err
	})
	switch {
	case errors.Is(err, ErrTooLate) || errors.Is(err, ErrChanged):
		d.alarms.after(row.Seq, 0)
	case err == nil && forbidden != "":
		d.log(row).Warn().Stringer("by", a.who).Str("reason", forbidden).Msg("approval refused")
		err = &ForbiddenError{forbidden}
	}
	return next, moved, err
}

// A matter is what a decision is about, and what is needed to carry it out.
type matter struct {
	task    envelope.Task
	verdict task.Verdict // on a start now
	ran     bool         // an attempt was made
	result  []byte       // the answer in review
}

// about gathers what a person decides about.
func (d *Dispatcher) about(ctx context.Context, row task.Task) (q matter, err error) {
	_, t, findings, err := d.load(ctx, row.Seq)
	if err != nil {
		return q, err
	}
	q.task = t
	if row.State == task.Review {
		q.result, err = d.Ledger.Result(ctx, row.Seq)
		return q, err
	}
	q.verdict = d.judge(t, findings, time.Now())
	q.ran, err = d.ran(ctx, row)
	return q, err
}

// standing returns why what was asked cannot be decided any more.
func (q matter) standing(row task.Task, c task.Consent, now time.Time) error {
	switch {
	case late(c, now):
		return ErrTooLate
	case row.State == task.Held && wantsApproval(q.verdict.Hold) && !matches(c, q.verdict):
		return ErrChanged
	}
	return nil
}

// record writes a decision down and moves the task to where it leads.
func (d *Dispatcher) record(tx *ledger.Tx, row task.Task, q matter, c task.Consent, a answer, now time.Time) (task.Task, bool, error) {
	by := a.as(c.Approver)
	c.Decision, c.Decided, c.Decider, c.Note, c.Expires = a.to, now, by, a.note, d.expiry(now)
	if decided, err := tx.Decide(task.Undecided, c); err != nil || !decided {
		return row, false, err
	}
	said := By{by, a.note}
	data := with(about(c), "by", by)
	if a.note != "" {
		data["note"] = a.note
	}
	if err := tx.Log(event(row, decided[a.to], data)); err != nil {
		return row, false, err
	}
	switch {
	case row.State == task.Review:
		return d.endReview(tx, row, q, a.to, envelope.ApprovalDenied, "denied by "+said.String())
	case a.to == task.Denied:
		v := refused(envelope.ApprovalDenied, "denied by "+said.String(), q.verdict.Levels)
		next, err := reject(tx, row, newRefusal(q.task, v, now, q.ran))
		return next, next.Seq != 0, err
	}
	rest := withoutApproval(task.Verdict{Hold: row.Reasons}).Hold
	change := task.Change{To: task.Held, Attempt: row.Attempt, Reasons: rest, Until: now} // what is left is judged at once
	moved, err := tx.Move(row.Seq, row.State, row.Attempt, change)
	row.Reasons, row.Until = rest, now
	return row, moved, err
}

// unmoved reports whether a task is in the ledger as it was read before.
func unmoved(tx *ledger.Tx, row task.Task) (bool, error) {
	now, found, err := tx.Task(row.Seq)
	return found && now.State == row.State && now.Attempt == row.Attempt && slices.Equal(now.Reasons, row.Reasons) &&
		(row.State != task.Waiting || now.Until.Equal(row.Until)), err // or somebody has claimed it
}
