package exchange

import (
	"context"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A Completer applies the outcomes of runs to their tasks.
type Completer struct {
	*outbox.Base
	Delegator *Delegator
	Overseer  *Overseer
}

// A completion is the outcome of a run, the move of its task, and the messages of its agent.
// All of it is one transaction.
type completion struct {
	task         envelope.Task // the request, when the answer is overseen
	Row          task.Task     // as its run had it; held, when the outcome is that of a child task
	conversation task.Conversation
	terms        task.Terms
	outcome      task.Outcome
	Event        task.Event // the last event of the task; zero: made from the outcome
	published    []ledger.Artifact
	bytes        []byte    // the result; nil: not encoded yet, and no file was placed
	at           time.Time // when the run, or its answer, ended

	outbound []outboundMessage
	takenIDs map[envelope.ID]bool // the ids of delegated tasks
	supervision
	step
}

// A supervision is the part of an overseer in a completion.
type supervision struct {
	overseer  string      // the agent's overseer at the end of the run; "" for none
	review    *Submission // asks the overseer of the agent; nil: no approval is needed
	reviewRun *reviewRun  // set for a run of an overseer; nil: a run of another agent
}

// A step is where a completion moves its task.
type step struct {
	Next   task.Task // the task after the completion
	moved  bool      // false: the task was moved by another goroutine first
	failed bool      // the run has failed, and the task waits for another agent or a reply
}

// commit makes a completion durable, and retries after temporary errors. A persistent error is
// logged; the run directory still has the outcome.
func (cp *Completer) commit(ctx context.Context, row task.Task, prepare func(context.Context) (*completion, error)) {
	uncancelled := context.WithoutCancel(ctx)
	var t *completion
	err := cp.Persist(ctx, row, func() (err error) {
		t, err = prepare(uncancelled)
		return err
	})
	if err != nil {
		return
	}
	var follow store.Consequences
	commit := func() error {
		return cp.Persist(ctx, row, func() (err error) {
			follow, err = cp.Writer.Commit(uncancelled, func(tx *store.Transaction) error { return cp.Apply(tx, t) })
			return err
		})
	}
	if t.publishesResult() && cp.Publisher.MayDraft(row.Seq) {
		var f *store.Draft
		f, err = cp.Publisher.CommitWithDraft(row.Seq, t.result(), commit)
		defer f.Drop()
	} else {
		err = commit()
	}
	if err == nil {
		cp.Writer.OnCommitted(uncancelled, follow)
	}
}

// publishesResult reports whether a completion ends its task with the result of its run, and
// the result needs no approval.
func (t *completion) publishesResult() bool {
	return t.reviewRun == nil && !t.suspends() && !t.needsOversight() && !needsApproval(t.terms, t.outcome)
}

// Prepare makes a completion before its transaction: it judges the work that the agent
// delegates.
func (cp *Completer) Prepare(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) (t *completion, err error) {
	t = &completion{Row: row, terms: terms, outcome: o, takenIDs: map[envelope.ID]bool{}, at: time.Now()}
	if t.overseer, err = cp.Reader.OverseerOf(ctx, row); err != nil {
		return nil, err
	}
	if t.published, err = store.Published(ctx, cp.Reader, row, o.Published); err != nil {
		return nil, err
	}
	if t.overseer != "" {
		t.outcome.Result = conversation.Unapproved(o.Result)
	}
	if !conversation.Silent(row) {
		if t.conversation, _, err = cp.Ledger.Conversation(ctx, row.Seq); err != nil {
			return nil, err
		}
	}
	if t.conversation.Tie == envelope.Oversee {
		if t.reviewRun, err = cp.Overseer.reviewRunOf(ctx, row, o); err != nil {
			return nil, err
		}
	}
	if len(t.outcome.Messages) == 0 && !t.needsOversight() {
		return t, nil
	}
	return t, cp.prepareMessages(ctx, t)
}

// prepareMessages completes and judges the messages of the agent. The message to its own overseer
// is the agent's answer, which that one reviews.
func (cp *Completer) prepareMessages(ctx context.Context, t *completion) (err error) {
	var submitted envelope.Message
	for _, m := range t.outcome.Messages {
		m = conversation.Complete(m, t.Row, t.conversation, dialect.NewID(), t.at)
		switch {
		case !conversation.AsksForWork(m), conversation.NoMode(m):
			t.outbound = append(t.outbound, outboundMessage{message: m})
			continue
		case m.Tie == envelope.Oversee && t.needsOversight():
			submitted = m
			continue
		}
		m.Tie = conversation.TieOf(m, t.outcome.Hold)
		for _, one := range conversation.Split(m) {
			s := outboundMessage{message: one}
			if s.submission, s.message, err = cp.Delegator.delegation(ctx, t.Row, s.message, t.takenIDs); err != nil {
				return err
			}
			if s.stale, err = cp.Delegator.delegatedBefore(ctx, t.Row, s.submission.Task.ID); err != nil {
				return err
			}
			t.outbound = append(t.outbound, s)
		}
	}
	if t.needsOversight() {
		t.review, err = cp.Overseer.oversight(ctx, t, submitted)
	}
	return err
}

// Apply writes a completion. Its transaction may run again.
func (cp *Completer) Apply(tx *store.Transaction, t *completion) error {
	t.Next, t.moved = t.Row, false
	if t.review != nil {
		t.review.Row = task.Task{}
	}
	if err := cp.Overseer.checkSeen(tx, t); err != nil {
		return err
	}
	if err := tx.Publish(t.published...); err != nil {
		return err
	}
	if len(t.outbound) > 0 { // after the notifications of earlier events
		if err := cp.Messenger.Notify(tx, t.Row.Seq); err != nil {
			return err
		}
	}
	if t.Row.State != task.Held {
		run := t.outcome.Run(t.Row)
		if (t.suspends() || t.reviewRun.continues()) && !t.failed {
			run.Cause = t.unanswered()
		}
		if _, _, err := cp.Writer.DecideOn(tx, t.Row.Seq, false, &core.EndRun{Task: t.Row.Seq, Run: run}); err != nil {
			return err
		}
	}
	if t.reviewRun != nil {
		if complete, err := cp.Overseer.completeReview(tx, t); complete || err != nil {
			return err
		}
	}
	return cp.finish(tx, t)
}

// commitIfUnmoved makes a completion durable, unless its task was moved since it was read.
func (cp *Completer) commitIfUnmoved(ctx context.Context, t *completion) error {
	return cp.Writer.Update(ctx, func(tx *store.Transaction) error {
		t.moved = false
		if same, err := store.Unmoved(tx, t.Row); err != nil || !same {
			return err
		}
		return cp.Apply(tx, t)
	})
}

// suspends reports whether the agent continues after a message or the end of another task.
func (t *completion) suspends() bool { return conversation.Suspends(t.outcome.Hold) }

// finish moves the task to where its outcome leads.
func (cp *Completer) finish(tx *store.Transaction, t *completion) error {
	if t.suspends() {
		return cp.suspend(tx, t)
	}
	finish := cp.finishCommand(t)
	if moved, err := cp.Delegator.emitAndMove(tx, t, finish); err != nil || !moved {
		return err
	}
	if t.Next.State == task.Done {
		cp.Runs.SetResult(t.Row.Seq, finish.Result)
	} else {
		cp.Runs.SetResult(t.Row.Seq, nil)
	}
	if finish.Overseen {
		if err := cp.Overseer.submitForReview(tx, t); err != nil {
			return err
		}
	}
	return cp.Delegator.wakeAll(tx, t)
}

// finishCommand returns the command that ends the task with its outcome.
func (cp *Completer) finishCommand(t *completion) *core.Finish {
	finish := &core.Finish{
		Task: t.Row.Seq, Seen: core.See(t.Row), Status: t.outcome.Result.Status, Kind: t.outcome.Result.Error.Kind, Result: t.result(),
		Terms: t.terms, NoReview: t.outcome.NoAgentRan(), Overseen: t.needsOversight(), Show: t.outcome.EndKind(), Data: t.outcome.EndData(),
	}
	if finish.Overseen {
		finish.ReviewUntil = cp.Reader.ReplyDeadline(time.Now())
	}
	if t.Event.Kind != "" {
		finish.Show, finish.Data = t.Event.Kind, t.Event.Data
	}
	return finish
}

// result returns the result of the task: the bytes of a placed file, or the encoded outcome.
func (t *completion) result() []byte {
	if t.bytes == nil {
		t.bytes = t.outcome.Result.Encode()
	}
	return t.bytes
}

// needsApproval reports whether a person has to approve an outcome before its publication: the
// terms require it, and an agent may have contributed to it.
func needsApproval(terms task.Terms, o task.Outcome) bool {
	return core.NeedsReview(terms) && !o.NoAgentRan()
}
