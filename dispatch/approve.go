package dispatch

import (
	"context"
	"errors"
	"fmt"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// The approvals are what people decide about tasks that wait for them.
type approvals struct {
	*outbox.Base
	*readiness
	steps  *steps
	placed *exchange.PlacedResults
}

// Approve lets a task go on that waits for a person: one that is held for
// approval starts when nothing else holds it, and the result of one in review
// is shown. The approval is bound to what was asked about; it is void when
// anything of that changes, and too old when the task did not start within the
// time that a question stands. Who may not decide is a *ForbiddenError, and
// the attempt an event. A task that waits for nobody is a *StateError; an id
// that is not known wraps ledger.ErrUnknown.
func (ap *approvals) Approve(ctx context.Context, id envelope.ID, who core.Person, note string) error {
	return ap.answer(ctx, "approve", id, answer{task.Approved, who, note})
}

// Deny ends a task that waits for a person as approval_denied: rejected when no
// agent ran, and otherwise in error, without the answer of its agent, which
// stays in its run directory and the ledger. Its errors are those of Approve.
func (ap *approvals) Deny(ctx context.Context, id envelope.ID, who core.Person, reason string) error {
	return ap.answer(ctx, "deny", id, answer{task.Denied, who, reason})
}

// RefuseApproval remembers that somebody tried to decide whom nobody asks, such
// as a process that belongs to a run.
func (ct *controls) RefuseApproval(ctx context.Context, id envelope.ID, who, why string) error {
	err := ct.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = ct.Reader.Newest(ctx, id)
	}
	if err == nil {
		err = ct.Writer.Update(ctx, func(tx *store.Transaction) error {
			return tx.Log(store.Event(row, task.KindApprovalRefused, map[string]any{"by": who, "reason": why}))
		})
	}
	if err != nil {
		return fmt.Errorf("refuse approval of %s: %w", id, err)
	}
	ct.Log(row).Warn().Str("by", who).Str("reason", why).Msg("approval refused")
	return nil
}

// An answer is what a person says to what they were asked.
type answer struct {
	to   task.Decision
	who  core.Person
	note string
}

// answer carries out what a person decides about a task.
func (ap *approvals) answer(ctx context.Context, verb string, id envelope.ID, a answer) error {
	err := ap.whenReady(ctx)
	asked := "" // what they were asked about: a question that takes its place is another one
	for moved := false; err == nil && !moved; {
		var row task.Task
		if row, err = ap.Reader.Undecided(ctx, id); err == nil && asked == "" {
			asked, err = ap.Reader.DigestAsked(ctx, row)
		}
		if err == nil && row.State == task.Held {
			_, err = ap.placed.HandleFile(ctx, row) // a result file from before the approval is not taken for the answer after it
		}
		if err == nil {
			row, moved, err = ap.decideOne(ctx, row, a, asked)
		}
		if moved {
			ap.Log(row).Info().Stringer("by", a.who).Str("decision", string(a.to)).Msg("approval decided")
			ap.steps.judgeDue(context.WithoutCancel(ctx), row)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return nil
}

// decideOne has a person decide about one revision, and returns it as it is
// then. It reports false when somebody moved the task meanwhile.
func (ap *approvals) decideOne(ctx context.Context, row task.Task, a answer, asked string) (task.Task, bool, error) {
	q, err := ap.Reader.About(ctx, row)
	if err != nil {
		return row, false, err
	}
	state, err := ap.Writer.Decide(ctx, store.TaskLoader(row.Seq, q.Began, true), &core.Answer{
		Task: row.Seq, Seen: core.See(row), Decision: a.to, Person: a.who, Note: a.note, Digest: asked,
		Request: q.Task, Verdict: q.Verdict, Result: q.Result,
	})
	forbidden, isForbidden := errors.AsType[*core.ForbiddenError](err)
	switch {
	case errors.Is(err, core.ErrStale):
		return row, false, nil
	case errors.Is(err, core.ErrTooLate) || errors.Is(err, core.ErrChanged):
		ap.Timers.After(row.Seq, 0)
		return row, false, err
	case isForbidden:
		ap.Log(row).Warn().Stringer("by", a.who).Str("reason", forbidden.Reason).Msg("approval refused")
		return row, false, err
	case err != nil:
		return row, false, err
	}
	return state.Task(row.Seq).Task, true, nil
}
