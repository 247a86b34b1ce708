package exchange

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// An Overseer has the answers of agents reviewed by the agents' overseers.
type Overseer struct {
	*outbox.Base
	Delegator *Delegator
}

// Some agents have an overseer, which must approve their answers before their publication
// (CAP-24). A child task asks the overseer.

// needsOversight reports whether a completion ends in an answer that an overseer must approve.
// An overseer's own answer needs no approval.
func (t *completion) needsOversight() bool {
	return !conversation.NoAnswer(t.outcome.Result.Status) && !t.suspends() && t.reviewRun == nil && t.overseer != ""
}

// oversight makes the submission that asks the overseer of an agent to review its answer. It
// uses the agent's message if the agent has submitted the answer itself.
func (ov *Overseer) oversight(ctx context.Context, t *completion, submitted envelope.Message) (*Submission, error) {
	_, task, _, err := ov.Reader.Load(ctx, t.Row.Seq)
	if err != nil {
		return nil, err
	}
	t.task = task
	id, err := ov.reviewID(ctx, t, submitted)
	if err != nil {
		return nil, err
	}
	m := conversation.ReviewRequest{
		Task: t.Row, Conversation: t.conversation, Sensitivity: t.task.Sensitivity, Answer: t.outcome.Result, Submitted: submitted,
		Overseer: t.overseer, Rule: ov.Agents.Protocol.Rule(t.Row.Requester, t.Row.Agent), Time: t.at,
	}.Message()
	m.Task, m.Dialect = id, ov.Agents.Protocol.Dialect(m.To[0])
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = string(id), t.conversation.Message
	}
	if m.Dialect == envelope.CAP {
		m.Act = envelope.Delegates
	}
	c, _, err := ov.Delegator.delegation(ctx, t.Row, m, t.takenIDs)
	return c, err
}

// reviewID returns the id of an overseer's task.
func (ov *Overseer) reviewID(ctx context.Context, t *completion, submitted envelope.Message) (envelope.ID, error) {
	if submitted.Task == "" || submitted.Task == t.Row.ID {
		return ov.Delegator.freeID(ctx, t.Row.ID, conversation.ReviewWork, t.takenIDs)
	}
	return ov.Delegator.childID(ctx, t.Row, submitted, t.takenIDs)
}

// submitForReview asks the overseer of an agent to review its answer. An overseer that has sent
// the work back is notified of the new answer. An answer that no overseer can approve is
// withheld.
func (ov *Overseer) submitForReview(tx *store.Transaction, t *completion) error {
	overseer := t.overseer
	switch {
	case overseer == t.Row.Agent:
		return ov.withhold(tx, t, "agent "+overseer+" would be its own overseer")
	case !ov.Agents.Known(overseer):
		return ov.withhold(tx, t, "there is no agent "+overseer+" to oversee it")
	}
	_, hasConversation, err := tx.Conversation(t.Row.Seq)
	if err != nil {
		return err
	}
	if !hasConversation { // an AINL request: rounds are counted from now on
		if err := tx.StartConversation(task.Conversation{Task: t.Row.Seq, Thread: string(t.Row.ID)}); err != nil {
			return err
		}
	}
	children, err := tx.Dependents(t.Row.Seq)
	if err != nil {
		return err
	}
	if open, ok := conversation.Reviewing(children); ok {
		m := *t.review.Message
		m.Act, m.Task, m.Raw, m.WantsReply = envelope.Informs, open.ID, nil, true
		m.ID = ""
		return ov.Messenger.EmitToAll(tx, open.Task, conversation.Complete(m, t.Row, task.Conversation{Thread: m.Thread, Trace: m.Trace}, dialect.NewID(), t.at), t.at)
	}
	if err := ov.Delegator.acceptDelegated(tx, t.Row, outboundMessage{message: *t.review.Message, submission: t.review}, t.at); err != nil {
		return err
	}
	if t.review.Disposition != Accepted || t.review.Row.State == task.Done {
		return ov.withhold(tx, t, overseer+" cannot be asked: "+t.review.Verdict.Findings.Refusals().String())
	}
	return tx.Log(store.Event(t.Row, task.KindOversightAsked, map[string]any{"overseer": overseer, "task": t.review.Row.ID}))
}

// withhold ends a task whose answer can't be approved.
func (ov *Overseer) withhold(tx *store.Transaction, t *completion, why string) error {
	next, moved, err := ov.endOversight(tx, t.Next, store.DecisionSubject{Task: t.task, Result: t.outcome.Result.Encode()}, envelope.OversightExpired, why)
	if moved {
		t.Next = next
	}
	return err
}

// endOversight ends a task in review without its answer.
func (ov *Overseer) endOversight(tx *store.Transaction, row task.Task, q store.DecisionSubject, kind envelope.Kind, why string) (task.Task, bool, error) {
	return ov.Writer.DecideOn(tx, row.Seq, true, &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: kind, Why: why, Request: q.Task, Result: q.Result,
	})
}

// returnToReview presents an answer to its overseer again when the agent has replied without
// another answer. It reports whether it did.
func (ov *Overseer) returnToReview(tx *store.Transaction, t *completion) (bool, error) {
	if t.Row.ResultSum == "" || t.outcome.Hold != task.Reply {
		return false, nil
	}
	children, err := tx.Dependents(t.Row.Seq)
	if err != nil {
		return false, err
	}
	open, ok := conversation.Reviewing(children)
	replies := func(s outboundMessage) bool { return s.submission == nil && slices.Contains(s.message.To, open.Agent) }
	if !ok || !slices.ContainsFunc(t.outbound, replies) {
		return false, nil
	}
	moved, err := ov.Delegator.emitAndMove(tx, t, &core.Reevaluate{
		Task: t.Row.Seq, Seen: core.See(t.Row), Until: ov.Reader.ReplyDeadline(time.Now()), Overseer: open.Agent,
	})
	if err != nil || !moved {
		return true, err
	}
	return true, ov.Delegator.wakeAll(tx, t)
}

// A reviewRun is the run of an overseer: the reviewed answer and the decision. The decision
// never comes from a line or a result file, since any program can write these.
type reviewRun struct {
	reviewed task.Task  // the task whose answer is reviewed
	terms    task.Terms // the terms of the run that gave the answer
	answer   store.DecisionSubject
	decision conversation.Decision
	text     string
	unseen   bool // the agent has answered again since the run began
}

// continues reports whether the overseer runs again after this run.
func (r *reviewRun) continues() bool {
	return r != nil && (r.decision == conversation.SendsBack || r.unseen)
}

// reviewRunOf returns the decision of an overseer, and the answer that it is about.
func (ov *Overseer) reviewRunOf(ctx context.Context, row task.Task, o task.Outcome) (*reviewRun, error) {
	reviewed, err := ov.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return nil, err
	}
	review := &reviewRun{reviewed: reviewed}
	if reviewed.State != task.Review {
		return review, nil // no decision is needed
	}
	if review.answer, err = ov.Reader.About(ctx, reviewed); err != nil {
		return nil, err
	}
	run, err := ov.Reader.RunOf(ctx, reviewed)
	if err != nil {
		return nil, err
	}
	review.terms = run.Terms
	seen, err := ov.reviewMaterial(ctx, row, review)
	review.decision, review.text = conversation.Review{
		Messages: o.Messages, Answer: o.Result, Waits: o.Hold != "", Broken: conversation.Broken(o), Dialect: ov.Agents.Protocol.Dialect(row.Agent),
		Worker: reviewed.Agent, Requester: reviewed.Requester, Tasks: []envelope.ID{row.ID, reviewed.ID}, Seen: seen,
	}.Decide()
	return review, err
}

// reviewMaterial returns what an overseer was given to review: the request, the answer, and
// later messages of the agent.
func (ov *Overseer) reviewMaterial(ctx context.Context, row task.Task, review *reviewRun) ([]jsontext.Value, error) {
	request, err := ov.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	seen := []jsontext.Value{request, review.answer.Result}
	messages, err := ov.Ledger.ConversationMessages(ctx, row)
	for _, m := range messages {
		if m.From == review.reviewed.Agent {
			seen = append(seen, m.Body)
		}
	}
	return seen, err
}

// checkSeen finds whether an overseer has seen the answer that it decides about: the agent may
// have answered again after the overseer's run began. An agent that fetches its tasks sees
// messages at once.
func (ov *Overseer) checkSeen(tx *store.Transaction, t *completion) error {
	review := t.reviewRun
	if review == nil || t.Row.State != task.Running {
		return nil
	}
	review.unseen = false
	messages, err := tx.MessagesSince(t.Row, ov.History.MarkOf(t.Row.Seq).Message)
	review.unseen = slices.ContainsFunc(messages, func(m task.Message) bool {
		return m.From == review.reviewed.Agent && m.Via == task.ByRun && conversation.Resumes(m.Act)
	})
	return err
}

// reviewAgain runs an overseer again that has not seen the latest answer.
func (ov *Overseer) reviewAgain(tx *store.Transaction, t *completion) error {
	moved, err := ov.Delegator.move(tx, t, &core.Wait{Task: t.Row.Seq, Seen: core.See(t.Row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	t.Next, _, err = ov.Messenger.Wake(tx, t.Next, map[string]any{"from": t.reviewRun.reviewed.Agent})
	return err
}

// completeReview applies the outcome of an overseer's run.
func (ov *Overseer) completeReview(tx *store.Transaction, t *completion) (complete bool, err error) {
	review := t.reviewRun
	reviewed, found, err := tx.Task(review.reviewed.Seq)
	if err != nil {
		return false, err
	}
	if found && reviewed.State == task.Review && review.unseen && (review.decision != "" || !t.suspends()) {
		return true, ov.reviewAgain(tx, t)
	}
	if !found || review.decision == "" || reviewed.State != task.Review || reviewed.Attempt != review.reviewed.Attempt {
		return false, nil
	}
	return true, ov.applyDecision(tx, t, reviewed)
}

// applyDecision applies an overseer's decision about an answer.
func (ov *Overseer) applyDecision(tx *store.Transaction, t *completion, reviewed task.Task) error {
	review := t.reviewRun
	if review.decision == conversation.SendsBack {
		rounds, err := tx.SendBack(reviewed.Seq)
		if err != nil {
			return err
		}
		if rounds <= ov.Agents.Protocol.Rounds {
			return ov.sendBack(tx, t, rounds)
		}
		why := fmt.Sprintf("%s is still not content after %d rounds: %s", t.Row.Agent, ov.Agents.Protocol.Rounds, review.text)
		return ov.closeReview(tx, t, envelope.OversightRejected, why)
	}
	switch review.decision {
	case conversation.Approves:
		return ov.closeReview(tx, t, "", "")
	case conversation.Rejects:
		return ov.closeReview(tx, t, envelope.OversightRejected, t.Row.Agent+" rejects it: "+review.text)
	}
	return ov.closeReview(tx, t, envelope.OversightExpired, t.Row.Agent+" has not decided: "+review.text)
}

// closeReview ends the overseer's task and the review: the answer is published, or withheld for
// the reason why.
func (ov *Overseer) closeReview(tx *store.Transaction, t *completion, kind envelope.Kind, why string) error {
	r := t.outcome.Result
	if t.suspends() || r.Status == "" {
		r.TaskID, r.AgentID, r.Status, r.Error = t.Row.ID, t.Row.Agent, envelope.OK, envelope.Error{}
		r.Output.Summary = cmp.Or(t.reviewRun.text, r.Output.Summary)
		if t.reviewRun.decision == conversation.Rejects {
			r.Status, r.Error = envelope.Failed, envelope.Error{Kind: envelope.OversightRejected, Message: r.Output.Summary}
		}
	}
	o := t.outcome
	o.Result, o.Hold = r, ""
	moved, err := ov.Delegator.emitAndMove(tx, t, &core.Finish{
		Task: t.Row.Seq, Seen: core.See(t.Row), Status: r.Status, Kind: r.Error.Kind, Result: r.Encode(),
		NoReview: true, Show: o.EndKind(), Data: o.EndData(), // the overseer's text is for the agent, not for the requester
	})
	if err != nil || !moved {
		return err
	}
	if kind == "" {
		err = ov.passReview(tx, t)
	} else {
		_, _, err = ov.endOversight(tx, t.reviewRun.reviewed, t.reviewRun.answer, kind, why)
	}
	if err != nil {
		return err
	}
	return ov.Delegator.wakeAll(tx, t)
}

// passReview publishes an answer, or asks a person to approve it as well, if the terms of its
// run require it.
func (ov *Overseer) passReview(tx *store.Transaction, t *completion) error {
	review := t.reviewRun
	_, _, err := ov.Writer.DecideOn(tx, review.reviewed.Seq, false, &core.PassReview{
		Task: review.reviewed.Seq, Attempt: review.reviewed.Attempt, By: t.Row.Agent, Review: t.Row.ID, Words: review.text, Terms: review.terms, Result: review.answer.Result,
	})
	return err
}

// sendBack runs an agent again with its overseer's question. The overseer waits for the reply.
func (ov *Overseer) sendBack(tx *store.Transaction, t *completion, round int) error {
	review := t.reviewRun
	moved, err := ov.Delegator.move(tx, t, &core.Wait{Task: t.Row.Seq, Seen: core.See(t.Row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	reviewed, moved, err := ov.Writer.DecideOn(tx, review.reviewed.Seq, false, &core.SendBack{
		Task: review.reviewed.Seq, Attempt: review.reviewed.Attempt, By: t.Row.Agent, Review: t.Row.ID, Round: round, Words: review.text,
	})
	if err != nil || !moved {
		return err
	}
	asked := func(s outboundMessage) bool {
		return s.submission == nil && slices.Contains(s.message.To, reviewed.Agent)
	}
	if !slices.ContainsFunc(t.outbound, asked) {
		if err := ov.askAgain(tx, t); err != nil {
			return err
		}
	}
	if err := ov.Delegator.emitAll(tx, t); err != nil {
		return err
	}
	return ov.Delegator.wakeAll(tx, t)
}

// askAgain records an overseer's question that came as its answer.
func (ov *Overseer) askAgain(tx *store.Transaction, t *completion) error {
	m := envelope.Message{
		Dialect: envelope.CAP, Act: envelope.Inquires, Task: t.Row.ID, WantsReply: true, // CAP has an act for this
		To: []string{t.reviewRun.reviewed.Agent}, Text: t.reviewRun.text,
	}
	return ov.Messenger.EmitToAll(tx, t.Row, conversation.Complete(m, t.Row, t.conversation, dialect.NewID(), t.at), t.at)
}

// reevaluateOversight ends a review when no overseer is left to end it, or its time is over. It
// reports whether the review belongs to an overseer.
func (ov *Overseer) reevaluateOversight(ctx context.Context, row task.Task) (bool, error) {
	asked, found, err := ov.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPost, "")
	if err != nil || found && asked.Decision == task.Undecided {
		return false, err
	}
	children, err := ov.Ledger.Dependents(ctx, row.Seq)
	if err != nil {
		return true, err
	}
	open, ok := conversation.Reviewing(children)
	why := "its overseer has not approved of it"
	switch {
	case ok && !core.IsPast(row.Until, time.Now()):
		return true, nil
	case ok:
		why = fmt.Sprintf("%s did not approve of it by %s", open.Agent, row.Until.UTC().Format(time.RFC3339))
	}
	q, err := ov.Reader.About(ctx, row)
	if err != nil {
		return true, err
	}
	_, err = ov.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, true), &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: envelope.OversightExpired, Why: why, Request: q.Task, Result: q.Result,
	})
	return true, err
}
