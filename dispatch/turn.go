package dispatch

import (
	"context"
	"time"

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
	row   task.Task     // as its run had it; held, when it is the outcome of a task below
	talk  task.Conversation
	terms task.Terms
	o     task.Outcome
	event task.Event // the story of an end; a zero one is made of the outcome
	bytes []byte     // the result; nil: nobody has placed it, and nobody asked for it yet

	at time.Time // when we heard it

	overseer  string // of its agent, as the run ended; "" for nobody
	outbound  []outboundMessage
	taken     map[envelope.ID]bool // the names of what is handed on
	review    *submission          // asks the overseer of the agent; nil: there is nothing to approve
	reviewRun *reviewRun           // of an overseer; nil: this is the run of another agent
	failed    bool                 // the run has, and the task waits to be mended

	next  task.Task // the task as it is then
	moved bool      // false: somebody was first
}

// turn makes the outcome of a run durable that is its task's last, or ends in
// words, and does what comes of it.
func (cp *completion) turn(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	cp.insistOn(ctx, row, func(ctx context.Context) (*turn, error) { return cp.prepareTurn(ctx, row, terms, o) })
}

// insistOn makes a turn durable in spite of passing trouble. Where that does not
// end it was logged, and the run directory still says what happened.
func (cp *completion) insistOn(ctx context.Context, row task.Task, prepare func(context.Context) (*turn, error)) {
	lasting := context.WithoutCancel(ctx)
	var t *turn
	err := cp.persist(ctx, row, func() (err error) {
		t, err = prepare(lasting)
		return err
	})
	if err != nil {
		return
	}
	var follow consequences
	commit := func() error {
		return cp.persist(ctx, row, func() (err error) {
			follow, err = cp.writer.commit(lasting, func(tx *transaction) error { return cp.takeTurn(tx, t) })
			return err
		})
	}
	if t.showsResult() && cp.publisher.mayDraft(row.Seq) {
		var f *draft
		f, err = cp.publisher.commitBeside(row.Seq, t.result(), commit)
		defer f.drop()
	} else {
		err = commit()
	}
	if err == nil {
		cp.writer.onCommitted(lasting, follow)
	}
}

// showsResult reports whether a turn ends its task with the result of its run, and nobody
// has to agree to that.
func (t *turn) showsResult() bool {
	return t.reviewRun == nil && !t.waits() && !t.overseen() && !reviewed(t.terms, t.o)
}

// prepareTurn does of a turn what can be done before its transaction: what the
// agent hands on is judged.
func (cp *completion) prepareTurn(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) (t *turn, err error) {
	t = &turn{row: row, terms: terms, o: o, taken: map[envelope.ID]bool{}, at: time.Now(), overseer: cp.agents.Protocol.Overseer(row.Agent)}
	if t.overseer != "" {
		t.o.Result = conversation.Unapproved(o.Result)
	}
	if !conversation.Silent(row) {
		if t.talk, _, err = cp.Ledger.Talk(ctx, row.Seq); err != nil {
			return nil, err
		}
	}
	if t.talk.Tie == envelope.Oversee {
		if t.reviewRun, err = cp.overseer.reviewRunOf(ctx, row, o); err != nil {
			return nil, err
		}
	}
	submitted, err := cp.prepareMessages(ctx, t)
	if err == nil && t.overseen() {
		t.review, err = cp.overseer.oversight(ctx, t, submitted)
	}
	return t, err
}

// prepareMessages completes and judges what the agent said. What it hands to its own
// overseer is its answer in other words, and is returned.
func (cp *completion) prepareMessages(ctx context.Context, t *turn) (submitted envelope.Message, err error) {
	for _, m := range t.o.Said {
		m = conversation.Complete(m, t.row, t.talk, dialect.NewID(), t.at)
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
			if s.submission, s.message, err = cp.delegator.delegation(ctx, t.row, s.message, t.taken); err != nil {
				return submitted, err
			}
			if s.stale, err = cp.delegator.delegatedBefore(ctx, t.row, s.submission.task.ID); err != nil {
				return submitted, err
			}
			t.outbound = append(t.outbound, s)
		}
	}
	return submitted, nil
}

// takeTurn is a turn in its transaction, which may be run again.
func (cp *completion) takeTurn(tx *transaction, t *turn) error {
	t.next, t.moved = t.row, false
	if t.review != nil {
		t.review.row = task.Task{}
	}
	if err := cp.overseer.checkSeen(tx, t); err != nil {
		return err
	}
	if len(t.outbound) > 0 { // after what its requester was to be told before
		if err := cp.messenger.notify(tx, t.row.Seq); err != nil {
			return err
		}
	}
	if t.row.State != task.Held {
		run := ended(t.row, t.o)
		if (t.waits() || t.reviewRun.goesOn()) && !t.failed {
			run.Cause = task.CauseNoAnswer
		}
		if _, _, err := cp.writer.decideOn(tx, t.row.Seq, false, &core.EndRun{Task: t.row.Seq, Run: run}); err != nil {
			return err
		}
	}
	if t.reviewRun != nil {
		if complete, err := cp.overseer.completeReview(tx, t); complete || err != nil {
			return err
		}
	}
	return cp.leaveRun(tx, t)
}

// takeAsRead makes a turn durable, unless somebody has moved its task since that
// was read.
func (cp *completion) takeAsRead(ctx context.Context, t *turn) error {
	return cp.writer.update(ctx, func(tx *transaction) error {
		t.moved = false
		if same, err := unmoved(tx, t.row); err != nil || !same {
			return err
		}
		return cp.takeTurn(tx, t)
	})
}

// waits reports whether the agent goes on when others have spoken or ended.
func (t *turn) waits() bool { return conversation.Suspends(t.o.Hold) }

// leaveRun moves the task of a turn to where its outcome leads.
func (cp *completion) leaveRun(tx *transaction, t *turn) error {
	if t.waits() {
		return cp.suspend(tx, t)
	}
	finish := cp.finishOf(t)
	if moved, err := cp.delegator.move(tx, t, finish); err != nil || !moved {
		return err
	}
	if t.next.State == task.Done {
		cp.runs.end(t.row.Seq, finish.Result)
	} else {
		cp.runs.end(t.row.Seq, nil)
	}
	if finish.Overseen {
		if err := cp.overseer.submitForReview(tx, t); err != nil {
			return err
		}
	}
	return cp.delegator.emitAll(tx, t)
}

// finishOf ends the task of a turn with the outcome of that.
func (cp *completion) finishOf(t *turn) *core.Finish {
	finish := &core.Finish{
		Task: t.row.Seq, Seen: core.See(t.row), Status: t.o.Result.Status, Kind: t.o.Result.Error.Kind, Result: t.result(),
		Terms: t.terms, NoReview: nobodyRan(t.o), Overseen: t.overseen(), Show: ending(t.o), Data: conclusion(t.o),
	}
	if finish.Overseen {
		finish.Patience = cp.reader.patience(time.Now())
	}
	if t.event.Kind != "" {
		finish.Show, finish.Data = t.event.Kind, t.event.Data
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

// ended is the ledger's record of how a run ended.
func ended(row task.Task, o task.Outcome) task.Run {
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

func conclusion(o task.Outcome) map[string]any {
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
