package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// Some agents have an overseer, who has to approve of what they answer before
// anybody sees it (CAP-24). It is asked in a task of its own below theirs.

// overseen reports whether a turn ends in an answer that an overseer has to
// approve of. What an overseer decides is not overseen itself.
func (t *turn) overseen() bool {
	return !conversation.NoAnswer(t.o.Result.Status) && !t.waits() && t.looked == nil && t.overseer != ""
}

// oversight makes what asks the overseer of an agent to look at its answer: in
// the words of the agent, if it has submitted that itself.
func (d *Dispatcher) oversight(ctx context.Context, t *turn, submitted envelope.Message) (*claim, error) {
	_, task, _, err := d.load(ctx, t.row.Seq)
	if err != nil {
		return nil, err
	}
	t.task = task
	id, err := d.reviewID(ctx, t, submitted)
	if err != nil {
		return nil, err
	}
	m := conversation.ReviewRequest{
		Task: t.row, Conversation: t.talk, Sensitivity: t.task.Sensitivity, Answer: t.o.Result, Submitted: submitted,
		Overseer: t.overseer, Rule: d.agents.Protocol.Rule(t.row.Requester, t.row.Agent), Time: t.at,
	}.Message()
	m.Task, m.Dialect = id, d.agents.Protocol.Dialect(m.To[0])
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = string(id), t.talk.Message
	}
	if m.Dialect == envelope.CAP {
		m.Act = envelope.Delegates
	}
	c, _, err := d.delegation(ctx, t.row, m, t.taken)
	return c, err
}

// reviewID is the name of the task in which an overseer looks at an answer.
func (d *Dispatcher) reviewID(ctx context.Context, t *turn, submitted envelope.Message) (envelope.ID, error) {
	if submitted.Task == "" || submitted.Task == t.row.ID {
		return d.freeID(ctx, t.row.ID, conversation.ReviewWork, t.taken)
	}
	return d.childID(ctx, t.row, submitted, t.taken)
}

// submitForReview asks the overseer of an agent to look at its answer, or tells
// it what the agent has answered since it sent the work back. When nobody can
// approve, the answer is not shown.
func (d *Dispatcher) submitForReview(tx *transaction, t *turn) error {
	overseer := t.overseer
	switch {
	case overseer == t.row.Agent:
		return d.withholdNow(tx, t, "agent "+overseer+" would be its own overseer")
	case !d.agents.Known(overseer):
		return d.withholdNow(tx, t, "there is no agent "+overseer+" to oversee it")
	}
	_, talks, err := tx.Talk(t.row.Seq)
	if err != nil {
		return err
	}
	if !talks { // an AINL request: rounds are counted from now on
		if err := tx.StartTalk(task.Conversation{Task: t.row.Seq, Thread: string(t.row.ID)}); err != nil {
			return err
		}
	}
	children, err := tx.Offspring(t.row.Seq)
	if err != nil {
		return err
	}
	if open, ok := conversation.Reviewing(children); ok {
		m := *t.review.said
		m.Act, m.Task, m.Raw, m.WantsReply = envelope.Informs, open.ID, nil, true
		m.ID = ""
		return d.sendOn(tx, open.Task, conversation.Complete(m, t.row, task.Conversation{Thread: m.Thread, Trace: m.Trace}, dialect.NewID(), t.at), t.at)
	}
	if err := d.passOn(tx, t.row, saying{message: *t.review.said, claim: t.review}, t.at); err != nil {
		return err
	}
	if t.review.fate != accepted || t.review.row.State == task.Done {
		return d.withholdNow(tx, t, overseer+" cannot be asked: "+t.review.verdict.Findings.Refusals().String())
	}
	return tx.Log(event(t.row, task.KindOversightAsked, map[string]any{"overseer": overseer, "task": t.review.row.ID}))
}

// withholdNow ends a task whose answer nobody can approve of.
func (d *Dispatcher) withholdNow(tx *transaction, t *turn, why string) error {
	next, moved, err := d.endOversight(tx, t.next, decisionSubject{task: t.task, result: t.o.Result.Encode()}, envelope.OversightExpired, why)
	if moved {
		t.next = next
	}
	return err
}

// endOversight ends a task in review without its answer.
func (d *Dispatcher) endOversight(tx *transaction, row task.Task, q decisionSubject, kind envelope.Kind, why string) (task.Task, bool, error) {
	return d.decideOn(tx, row.Seq, true, &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: kind, Why: why, Request: q.task, Result: q.result,
	})
}

// backToReview puts an answer before its overseer again when the agent has
// replied to it and stands by that answer. It reports whether it did.
func (d *Dispatcher) backToReview(tx *transaction, t *turn) (bool, error) {
	if t.row.ResultSum == "" || t.o.Hold != task.Reply {
		return false, nil
	}
	children, err := tx.Offspring(t.row.Seq)
	if err != nil {
		return false, err
	}
	open, ok := conversation.Reviewing(children)
	replies := func(s saying) bool { return s.claim == nil && slices.Contains(s.message.To, open.Agent) }
	if !ok || !slices.ContainsFunc(t.said, replies) {
		return false, nil
	}
	moved, err := d.move(tx, t, &core.Reconsider{Task: t.row.Seq, Seen: core.See(t.row), Until: d.patience(time.Now()), Overseer: open.Agent})
	if err != nil || !moved {
		return true, err
	}
	return true, d.utterAll(tx, t)
}
