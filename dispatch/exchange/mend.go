package exchange

import (
	"context"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// Mended is what the operator wants done about how a run failed (CAP-32); nothing
// when it did not.
func (cp *Completion) Mended(row task.Task, o task.Outcome) store.Mend {
	if o.Result.Status != envelope.Failed || o.Hold != "" {
		return store.Mend{}
	}
	return cp.Agents.Protocol.Mend(row.Agent, o.Result.Error.Kind)
}

// Mend makes an outcome durable that is not tried again: somebody else has the
// task, or is asked about it, where the operator wants that.
func (cp *Completion) Mend(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	how := cp.Mended(row, o)
	switch {
	case how.Reassign != "" && how.Reassign != row.Agent:
		cp.insistOn(ctx, row, func(ctx context.Context) (*turn, error) { return cp.reassign(ctx, row, terms, o, how.Reassign) })
	case how.Escalate != "":
		cp.insistOn(ctx, row, func(ctx context.Context) (*turn, error) { return cp.escalate(ctx, row, terms, o, how.Escalate) })
	default:
		cp.Turn(ctx, row, terms, o)
	}
}

// reassign hands a task that failed to another agent, whose outcome becomes its
// own. An overseer's work is nobody else's.
func (cp *Completion) reassign(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, to string) (*turn, error) {
	t, err := cp.PrepareTurn(ctx, row, terms, o)
	if err != nil || t.reviewRun != nil {
		return t, err
	}
	raw, err := cp.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return t, err
	}
	codec, ok := dialect.Of(row.Dialect)
	if !ok {
		return t, nil
	}
	m, findings := codec.Decode(raw, cp.Opts.Reading)
	if findings.Refused() {
		return t, nil
	}
	if m.Task, err = cp.Delegator.freeID(ctx, row.ID, "", t.taken); err != nil {
		return t, err
	}
	m.Raw, m.To, m.Time, m.Tie = nil, []string{to}, time.Now(), envelope.Transfer
	m.Thread, m.Trace = t.talk.Thread, t.talk.Trace
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = string(m.Task), t.talk.Message
	} else {
		m.ID = ""
	}
	c, m, err := cp.Delegator.delegation(ctx, row, m, t.taken)
	if err != nil {
		return t, err
	}
	return t.mend(task.Children, outboundMessage{message: m, submission: c}), nil
}

// escalate asks somebody about a task that failed. Their reply has it run again.
func (cp *Completion) escalate(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, to string) (*turn, error) {
	t, err := cp.PrepareTurn(ctx, row, terms, o)
	if err != nil || t.reviewRun != nil {
		return t, err
	}
	m := envelope.Message{
		Dialect: envelope.CAP, Act: envelope.Asks, Task: row.ID, To: []string{to}, WantsReply: true,
		Text: fmt.Sprintf("%s failed at task %s (%s): %s. Reply, and it is run again.", row.Agent, row.ID, o.Result.Error.Kind, o.Result.Error.Message),
	}
	if row.Dialect == envelope.CLowl {
		m.Dialect, m.Type = envelope.CLowl, "escalation"
	}
	return t.mend(task.Reply, outboundMessage{message: conversation.Complete(m, row, t.talk, dialect.NewID(), t.at)}), nil
}

// mend has a turn wait for what mends it, instead of its end.
func (t *turn) mend(hold task.Reason, s outboundMessage) *turn {
	t.failed, t.o.Hold = true, hold
	t.outbound = append(t.outbound, s)
	return t
}
