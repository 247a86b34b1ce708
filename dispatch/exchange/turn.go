package exchange

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// A turn is the outcome of a run on its way into the ledger: where it moves the
// task, and what the agent said and handed on. It is one transaction.
type turn struct {
	task  envelope.Task // what was asked for, where the answer is overseen
	Row   task.Task     // as its run had it; held, when it is the outcome of a task below
	talk  task.Conversation
	terms task.Terms
	o     task.Outcome
	Event task.Event // with which the task ends; a zero one is made of the outcome
	bytes []byte     // the result; nil: nobody has placed it, and nobody asked for it yet
	at    time.Time  // when the run, or its answer, ended

	outbound []outboundMessage
	taken    map[envelope.ID]bool // the names of what is handed on
	supervision
	step
}

// A supervision is what an overseer has to do with a turn.
type supervision struct {
	overseer  string      // of its agent, as the run ended; "" for nobody
	review    *Submission // asks the overseer of the agent; nil: there is nothing to approve
	reviewRun *reviewRun  // of an overseer; nil: this is the run of another agent
}

// A step is where a turn takes its task.
type step struct {
	Next   task.Task // the task as it is then
	moved  bool      // false: somebody was first
	failed bool      // the run has, and the task waits to be mended
}

// Turn makes the outcome of a run durable that is its task's last, or ends in
// words, and does what comes of it.
func (cp *Completion) Turn(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	cp.insistOn(ctx, row, func(ctx context.Context) (*turn, error) { return cp.PrepareTurn(ctx, row, terms, o) })
}

// insistOn makes a turn durable in spite of passing trouble. Where that does not
// end it was logged, and the run directory still says what happened.
func (cp *Completion) insistOn(ctx context.Context, row task.Task, prepare func(context.Context) (*turn, error)) {
	lasting := context.WithoutCancel(ctx)
	var t *turn
	err := cp.Persist(ctx, row, func() (err error) {
		t, err = prepare(lasting)
		return err
	})
	if err != nil {
		return
	}
	var follow store.Consequences
	commit := func() error {
		return cp.Persist(ctx, row, func() (err error) {
			follow, err = cp.Writer.Commit(lasting, func(tx *store.Transaction) error { return cp.TakeTurn(tx, t) })
			return err
		})
	}
	if t.showsResult() && cp.Publisher.MayDraft(row.Seq) {
		var f *store.Draft
		f, err = cp.Publisher.CommitBeside(row.Seq, t.result(), commit)
		defer f.Drop()
	} else {
		err = commit()
	}
	if err == nil {
		cp.Writer.OnCommitted(lasting, follow)
	}
}

// showsResult reports whether a turn ends its task with the result of its run, and nobody
// has to agree to that.
func (t *turn) showsResult() bool {
	return t.reviewRun == nil && !t.waits() && !t.overseen() && !reviewed(t.terms, t.o)
}

// PrepareTurn does of a turn what can be done before its transaction: what the
// agent hands on is judged.
func (cp *Completion) PrepareTurn(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) (t *turn, err error) {
	t = &turn{Row: row, terms: terms, o: o, taken: map[envelope.ID]bool{}, at: time.Now()}
	t.overseer = cp.Agents.Protocol.Overseer(row.Agent)
	if t.overseer != "" {
		t.o.Result = conversation.Unapproved(o.Result)
	}
	if !conversation.Silent(row) {
		if t.talk, _, err = cp.Ledger.Talk(ctx, row.Seq); err != nil {
			return nil, err
		}
	}
	if t.talk.Tie == envelope.Oversee {
		if t.reviewRun, err = cp.Overseer.reviewRunOf(ctx, row, o); err != nil {
			return nil, err
		}
	}
	submitted, err := cp.prepareMessages(ctx, t)
	if err == nil && t.overseen() {
		t.review, err = cp.Overseer.oversight(ctx, t, submitted)
	}
	return t, err
}

// prepareMessages completes and judges what the agent said. What it hands to its own
// overseer is its answer in other words, and is returned.
func (cp *Completion) prepareMessages(ctx context.Context, t *turn) (submitted envelope.Message, err error) {
	for _, m := range t.o.Said {
		m = conversation.Complete(m, t.Row, t.talk, dialect.NewID(), t.at)
		switch {
		case !conversation.AsksForWork(m):
			t.outbound = append(t.outbound, outboundMessage{message: m})
			continue
		case m.Tie == envelope.Oversee && t.overseen():
			submitted = m
			continue
		}
		m.Tie = conversation.TieOf(m, t.o.Hold)
		for _, one := range conversation.Split(m) {
			s := outboundMessage{message: one}
			if s.submission, s.message, err = cp.Delegator.delegation(ctx, t.Row, s.message, t.taken); err != nil {
				return submitted, err
			}
			if s.stale, err = cp.Delegator.delegatedBefore(ctx, t.Row, s.submission.Task.ID); err != nil {
				return submitted, err
			}
			t.outbound = append(t.outbound, s)
		}
	}
	return submitted, nil
}

// TakeTurn is a turn in its transaction, which may be run again.
func (cp *Completion) TakeTurn(tx *store.Transaction, t *turn) error {
	t.Next, t.moved = t.Row, false
	if t.review != nil {
		t.review.Row = task.Task{}
	}
	if err := cp.Overseer.checkSeen(tx, t); err != nil {
		return err
	}
	if len(t.outbound) > 0 { // after what its requester was to be told before
		if err := cp.Messenger.Notify(tx, t.Row.Seq); err != nil {
			return err
		}
	}
	if t.Row.State != task.Held {
		run := Ended(t.Row, t.o)
		if (t.waits() || t.reviewRun.goesOn()) && !t.failed {
			run.Cause = task.CauseNoAnswer
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
	return cp.leaveRun(tx, t)
}

// takeAsRead makes a turn durable, unless somebody has moved its task since that
// was read.
func (cp *Completion) takeAsRead(ctx context.Context, t *turn) error {
	return cp.Writer.Update(ctx, func(tx *store.Transaction) error {
		t.moved = false
		if same, err := store.Unmoved(tx, t.Row); err != nil || !same {
			return err
		}
		return cp.TakeTurn(tx, t)
	})
}

// waits reports whether the agent goes on when others have spoken or ended.
func (t *turn) waits() bool { return conversation.Suspends(t.o.Hold) }

// leaveRun moves the task of a turn to where its outcome leads.
func (cp *Completion) leaveRun(tx *store.Transaction, t *turn) error {
	if t.waits() {
		return cp.suspend(tx, t)
	}
	finish := cp.finishOf(t)
	if moved, err := cp.Delegator.move(tx, t, finish); err != nil || !moved {
		return err
	}
	if t.Next.State == task.Done {
		cp.Runs.End(t.Row.Seq, finish.Result)
	} else {
		cp.Runs.End(t.Row.Seq, nil)
	}
	if finish.Overseen {
		if err := cp.Overseer.submitForReview(tx, t); err != nil {
			return err
		}
	}
	return cp.Delegator.emitAll(tx, t)
}

// finishOf ends the task of a turn with the outcome of that.
func (cp *Completion) finishOf(t *turn) *core.Finish {
	finish := &core.Finish{
		Task: t.Row.Seq, Seen: core.See(t.Row), Status: t.o.Result.Status, Kind: t.o.Result.Error.Kind, Result: t.result(),
		Terms: t.terms, NoReview: nobodyRan(t.o), Overseen: t.overseen(), Show: ending(t.o), Data: Conclusion(t.o),
	}
	if finish.Overseen {
		finish.Patience = cp.Reader.Patience(time.Now())
	}
	if t.Event.Kind != "" {
		finish.Show, finish.Data = t.Event.Kind, t.Event.Data
	}
	return finish
}

// result is what a turn ends its task with: as somebody placed it, or as the
// outcome has it.
func (t *turn) result() []byte {
	if t.bytes == nil {
		t.bytes = t.o.Result.Encode()
	}
	return t.bytes
}

// Ended is the ledger's record of how a run ended.
func Ended(row task.Task, o task.Outcome) task.Run {
	run := task.Run{
		Task: row.Seq, Attempt: row.Attempt,
		Started: o.Exit.Started, Finished: o.Exit.Finished,
		PID: o.Exit.PID, ExitCode: o.Exit.Code, Signal: o.Exit.Signal, Cause: o.Exit.Cause,
	}
	if cost := o.Result.Cost; cost != nil {
		run.Tokens = &cost.Tokens
		if !cost.Unpriced {
			run.USDCents = &cost.USDCents
		}
	}
	return run
}

// ending is the kind of event with which a run ended.
func ending(o task.Outcome) task.Kind {
	if o.Result.Error.Kind == envelope.Cancelled {
		return task.KindTaskCancelled
	}
	return task.KindTaskFinished
}

// Conclusion is what the event of an end says about an outcome.
func Conclusion(o task.Outcome) map[string]any {
	data := map[string]any{"status": o.Result.Status, "exit_code": o.Exit.Code, "took_ms": o.Exit.Wall.Milliseconds()}
	if o.Result.Error != (envelope.Error{}) {
		data["error"] = o.Result.Error.Kind
		data["message"] = o.Result.Error.Message
	}
	return data
}

// reviewed reports whether a person has to agree before an outcome is shown:
// when the task's terms say so, and an agent may have had a part in it.
func reviewed(terms task.Terms, o task.Outcome) bool {
	return core.NeedsReview(terms) && !nobodyRan(o)
}

// nobodyRan reports whether no agent had a part in an outcome.
func nobodyRan(o task.Outcome) bool {
	return o.Result.Status == envelope.Rejected && o.Exit.Started.IsZero() && o.Exit.Cause != task.CauseLost
}
