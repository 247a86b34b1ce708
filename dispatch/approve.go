package dispatch

import (
	"context"
	"errors"
	"fmt"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// approvals carries out the decisions of people about tasks that wait for approval.
type approvals struct {
	*outbox.Base
	*readiness
	steps  *steps
	placed *exchange.PlacedResults
}

// Approve lets a task continue that waits for approval. A held task starts when nothing else
// holds it; a task in review gets its result published. The approval is bound to the content
// that the approver was asked about. It is void when that content changes, and it expires when
// the task does not start within the approval TTL. Errors: *ForbiddenError when the person may
// not decide (the attempt is recorded as an event), *StateError when the task waits for no
// approval; the error of an unknown id wraps ledger.ErrUnknown.
func (ap *approvals) Approve(ctx context.Context, id envelope.ID, person core.Person, note string) error {
	return ap.decide(ctx, "approve", id, decision{task.Approved, person, note})
}

// Deny ends a task that waits for approval as approval_denied. The task is rejected when no
// agent ran, and in error otherwise. The result does not contain the agent's answer, which
// stays in the run directory and the ledger. Its errors are those of Approve.
func (ap *approvals) Deny(ctx context.Context, id envelope.ID, person core.Person, reason string) error {
	return ap.decide(ctx, "deny", id, decision{task.Denied, person, reason})
}

// Question returns the revision of a task that waits for a decision, what is asked, and the least
// proof that policy accepts for it. Of several open calls, it is the one with a digest, or else the
// oldest. Its errors are those of Approve.
func (ap *approvals) Question(
	ctx context.Context, verb string, id envelope.ID, digest string,
) (row task.Task, asked task.Consent, needs task.ProofLevel, err error) {
	err = ap.whenReady(ctx)
	if err == nil {
		row, err = ap.Reader.Undecided(ctx, id)
	}
	if err == nil {
		asked, err = ap.Reader.Asked(ctx, row, digest)
	}
	var q store.DecisionSubject
	if err == nil {
		q, err = ap.Reader.About(ctx, row)
	}
	if err != nil {
		return row, asked, needs, fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return row, asked, q.Proof, nil
}

// RefuseApproval records that a caller without the right to approve tried to decide, such as a
// process of a run.
func (ct *controls) RefuseApproval(ctx context.Context, id envelope.ID, caller, why string) error {
	err := ct.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = ct.Reader.Newest(ctx, id)
	}
	if err == nil {
		err = ct.Writer.Update(ctx, func(tx *store.Transaction) error {
			return tx.Log(store.Event(row, task.KindApprovalRefused, map[string]any{"by": caller, "reason": why}))
		})
	}
	if err != nil {
		return fmt.Errorf("refuse approval of %s: %w", id, err)
	}
	ct.Log(row).Warn().Str("by", caller).Str("reason", why).Msg("approval refused")
	return nil
}

// A decision is what a person decides about a task.
type decision struct {
	to     task.Decision
	person core.Person
	note   string
}

// decide carries out a decision about a task.
func (ap *approvals) decide(ctx context.Context, verb string, id envelope.ID, d decision) error {
	err := ap.whenReady(ctx)
	asked := d.person.Digest // or of the first question: a later question is a different one
	for moved := false; err == nil && !moved; {
		var row task.Task
		if row, err = ap.Reader.Undecided(ctx, id); err == nil && asked == "" {
			var question task.Consent
			question, err = ap.Reader.Asked(ctx, row, "")
			asked = question.Digest
		}
		if err == nil && row.State == task.Held {
			_, err = ap.placed.HandleFile(ctx, row) // an earlier result file must not count as the answer of the approved run
		}
		if err == nil {
			row, moved, err = ap.decideOne(ctx, row, d, asked)
		}
		if moved {
			ap.Log(row).Info().Stringer("by", d.person).Str("decision", string(d.to)).Msg("approval decided")
			ap.steps.judgeDue(context.WithoutCancel(ctx), row)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return nil
}

// decideOne applies a decision to one revision, and returns the revision after it. It reports
// false when the task was moved meanwhile.
func (ap *approvals) decideOne(ctx context.Context, row task.Task, d decision, asked string) (task.Task, bool, error) {
	q, err := ap.Reader.About(ctx, row)
	if err != nil {
		return row, false, err
	}
	level, unproven, err := ap.Reader.Prove(ctx, row, d.to, d.person)
	if err != nil {
		return row, false, err
	}
	state, err := ap.Writer.Decide(ctx, store.TaskLoader(row.Seq, q.Began, true), &core.Answer{
		Task: row.Seq, Seen: core.See(row), Decision: d.to, Person: d.person, Note: d.note, Digest: asked,
		Level: level, Needed: q.Proof, Unproven: unproven, Request: q.Task, Verdict: q.Verdict, Result: q.Result,
	})
	forbidden, isForbidden := errors.AsType[*core.ForbiddenError](err)
	switch {
	case errors.Is(err, core.ErrStale):
		return row, false, nil
	case errors.Is(err, core.ErrTooLate) || errors.Is(err, core.ErrChanged):
		ap.Timers.Now(row.Seq)
		return row, false, err
	case isForbidden:
		ap.Log(row).Warn().Stringer("by", d.person).Str("reason", forbidden.Reason).Msg("approval refused")
		return row, false, err
	case err != nil:
		return row, false, err
	}
	return state.Task(row.Seq).Task, true, nil
}
