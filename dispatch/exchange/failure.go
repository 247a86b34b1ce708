package exchange

import (
	"context"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// OnFailure returns the operator's action for a failed run (CAP-32); nothing when the run did
// not fail, or when routing cannot choose another agent for its request.
func (cp *Completer) OnFailure(row task.Task, o task.Outcome) (action store.FailureAction) {
	if o.Result.Status == envelope.Failed && o.Hold == "" {
		action = cp.Agents.Protocol.OnFailure(row.Agent, o.Result.Error.Kind)
	}
	if action.Reassign == store.Route && row.Dialect != envelope.AINL && row.Dialect != envelope.Clutch {
		return store.FailureAction{} // in CLowl and CAP, Everybody means all agents
	}
	return action
}

// Complete makes the outcome of a run durable that is not retried, and takes the next steps. If the
// operator wants it, another agent gets a failed task, or a participant is asked about it.
func (cp *Completer) Complete(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	action := cp.OnFailure(row, o)
	switch {
	case action.Reassign != "" && action.Reassign != row.Agent:
		cp.commit(ctx, row, func(ctx context.Context) (*completion, error) {
			return cp.reassign(ctx, row, terms, o, action.Reassign)
		})
	case action.Escalate != "":
		cp.commit(ctx, row, func(ctx context.Context) (*completion, error) {
			return cp.escalate(ctx, row, terms, o, action.Escalate)
		})
	default:
		cp.commit(ctx, row, func(ctx context.Context) (*completion, error) { return cp.Prepare(ctx, row, terms, o) })
	}
}

// reassign delegates a failed task to another agent, whose outcome becomes the outcome of the
// task. The review of an overseer is never reassigned.
func (cp *Completer) reassign(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, to string) (*completion, error) {
	t, err := cp.Prepare(ctx, row, terms, o)
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
	id, err := cp.Delegator.freeID(ctx, row.ID, "", t.takenIDs)
	if err != nil {
		return t, err
	}
	m = conversation.Renamed(m, id, row.ID)
	m.To, m.Time, m.Tie = []string{to}, time.Now(), envelope.Transfer
	m.Thread, m.Trace = t.conversation.Thread, t.conversation.Trace
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = string(m.Task), t.conversation.Message
	} else {
		m.ID = ""
	}
	if to == store.Route {
		m = leaveChoice(m)
	}
	c, m, err := cp.Delegator.delegation(ctx, row, m, t.takenIDs)
	if err != nil {
		return t, err
	}
	return t.awaitRepair(task.Children, outboundMessage{message: m, submission: c}), nil
}

// leaveChoice makes a request one whose agent routing chooses. The agents that failed at the task
// are excluded then.
func leaveChoice(m envelope.Message) envelope.Message {
	if m.Clutch == nil {
		m.To = []string{envelope.Everybody}
		return m
	}
	own := *m.Clutch
	own.Recipients, own.IdempotencyKey = nil, ""
	m.To, m.Clutch = nil, &own
	m.Request.Agent, m.Request.Clutch = "", &own
	return m
}

// escalate asks a participant about a failed task. The reply runs the task again.
func (cp *Completer) escalate(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, to string) (*completion, error) {
	t, err := cp.Prepare(ctx, row, terms, o)
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
	return t.awaitRepair(task.Reply, outboundMessage{message: conversation.Complete(m, row, t.conversation, dialect.NewID(), t.at)}), nil
}

// awaitRepair lets the task wait for another agent or a reply, instead of ending.
func (t *completion) awaitRepair(hold task.Reason, s outboundMessage) *completion {
	t.failed, t.outcome.Hold = true, hold
	t.outbound = append(t.outbound, s)
	return t
}
