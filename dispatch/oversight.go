package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// Some agents have an overseer, which has to approve their answers before anybody sees
// them (CAP-24). It is asked in a task of its own below theirs.

// overseen reports whether a turn ends in an answer that an overseer has to approve. An
// overseer's own answer has none.
func (t *turn) overseen() bool {
	return !conversation.NoAnswer(t.o.Result.Status) && !t.waits() && t.reviewRun == nil && t.overseer != ""
}

// oversight makes the submission that asks the overseer of an agent to review its answer: in
// the agent's words, if it has submitted the answer itself.
func (ov *overseer) oversight(ctx context.Context, t *turn, submitted envelope.Message) (*submission, error) {
	_, task, _, err := ov.reader.load(ctx, t.row.Seq)
	if err != nil {
		return nil, err
	}
	t.task = task
	id, err := ov.reviewID(ctx, t, submitted)
	if err != nil {
		return nil, err
	}
	m := conversation.ReviewRequest{
		Task: t.row, Conversation: t.talk, Sensitivity: t.task.Sensitivity, Answer: t.o.Result, Submitted: submitted,
		Overseer: t.overseer, Rule: ov.agents.Protocol.Rule(t.row.Requester, t.row.Agent), Time: t.at,
	}.Message()
	m.Task, m.Dialect = id, ov.agents.Protocol.Dialect(m.To[0])
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = string(id), t.talk.Message
	}
	if m.Dialect == envelope.CAP {
		m.Act = envelope.Delegates
	}
	c, _, err := ov.delegator.delegation(ctx, t.row, m, t.taken)
	return c, err
}

// reviewID returns the name of an overseer's task.
func (ov *overseer) reviewID(ctx context.Context, t *turn, submitted envelope.Message) (envelope.ID, error) {
	if submitted.Task == "" || submitted.Task == t.row.ID {
		return ov.delegator.freeID(ctx, t.row.ID, conversation.ReviewWork, t.taken)
	}
	return ov.delegator.childID(ctx, t.row, submitted, t.taken)
}

// submitForReview asks the overseer of an agent to review its answer, or tells an
// overseer that has sent the work back what the agent answers now. When nobody can
// approve the answer, it is withheld.
func (ov *overseer) submitForReview(tx *transaction, t *turn) error {
	overseer := t.overseer
	switch {
	case overseer == t.row.Agent:
		return ov.withhold(tx, t, "agent "+overseer+" would be its own overseer")
	case !ov.agents.Known(overseer):
		return ov.withhold(tx, t, "there is no agent "+overseer+" to oversee it")
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
		return ov.messenger.emitToAll(tx, open.Task, conversation.Complete(m, t.row, task.Conversation{Thread: m.Thread, Trace: m.Trace}, dialect.NewID(), t.at), t.at)
	}
	if err := ov.delegator.acceptDelegated(tx, t.row, outboundMessage{message: *t.review.said, submission: t.review}, t.at); err != nil {
		return err
	}
	if t.review.fate != accepted || t.review.row.State == task.Done {
		return ov.withhold(tx, t, overseer+" cannot be asked: "+t.review.verdict.Findings.Refusals().String())
	}
	return tx.Log(event(t.row, task.KindOversightAsked, map[string]any{"overseer": overseer, "task": t.review.row.ID}))
}

// withhold ends a task whose answer nobody can approve.
func (ov *overseer) withhold(tx *transaction, t *turn, why string) error {
	next, moved, err := ov.endOversight(tx, t.next, decisionSubject{task: t.task, result: t.o.Result.Encode()}, envelope.OversightExpired, why)
	if moved {
		t.next = next
	}
	return err
}

// endOversight ends a task in review without its answer.
func (ov *overseer) endOversight(tx *transaction, row task.Task, q decisionSubject, kind envelope.Kind, why string) (task.Task, bool, error) {
	return ov.writer.decideOn(tx, row.Seq, true, &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: kind, Why: why, Request: q.task, Result: q.result,
	})
}

// returnToReview puts an answer before its overseer again when the agent has replied
// without another answer. It reports whether it did.
func (ov *overseer) returnToReview(tx *transaction, t *turn) (bool, error) {
	if t.row.ResultSum == "" || t.o.Hold != task.Reply {
		return false, nil
	}
	children, err := tx.Offspring(t.row.Seq)
	if err != nil {
		return false, err
	}
	open, ok := conversation.Reviewing(children)
	replies := func(s outboundMessage) bool { return s.submission == nil && slices.Contains(s.message.To, open.Agent) }
	if !ok || !slices.ContainsFunc(t.outbound, replies) {
		return false, nil
	}
	moved, err := ov.delegator.move(tx, t, &core.Reconsider{Task: t.row.Seq, Seen: core.See(t.row), Until: ov.reader.patience(time.Now()), Overseer: open.Agent})
	if err != nil || !moved {
		return true, err
	}
	return true, ov.delegator.emitAll(tx, t)
}

// A reviewRun is the run of an overseer: whose answer it reviews, and its decision. No
// line and no result file counts, since anybody can write one.
type reviewRun struct {
	above    task.Task  // the task whose answer it reviews
	terms    task.Terms // of the run that gave it
	answer   decisionSubject
	decision conversation.Decision
	words    string
	unseen   bool // the agent has answered anew since the run began
}

// goesOn reports whether the overseer runs again after this run.
func (l *reviewRun) goesOn() bool {
	return l != nil && (l.decision == conversation.SendsBack || l.unseen)
}

// reviewRunOf finds out what an overseer has decided, and about which answer.
func (ov *overseer) reviewRunOf(ctx context.Context, row task.Task, o task.Outcome) (*reviewRun, error) {
	above, err := ov.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return nil, err
	}
	l := &reviewRun{above: above}
	if above.State != task.Review {
		return l, nil // there is nothing to decide
	}
	if l.answer, err = ov.reader.about(ctx, above); err != nil {
		return nil, err
	}
	run, err := ov.reader.runOf(ctx, above)
	if err != nil {
		return nil, err
	}
	l.terms = run.Terms
	seen, err := ov.givenTo(ctx, row, l)
	l.decision, l.words = conversation.Review{
		Said: o.Said, Answer: o.Result, GoesOn: o.Hold != "", Broken: conversation.Broken(o), Dialect: ov.agents.Protocol.Dialect(row.Agent),
		Worker: above.Agent, Requester: above.Requester, Tasks: []envelope.ID{row.ID, above.ID}, Seen: seen,
	}.Decide()
	return l, err
}

// givenTo returns what an overseer was given to review: the request, the answer, and the
// agent's messages since.
func (ov *overseer) givenTo(ctx context.Context, row task.Task, l *reviewRun) ([]jsontext.Value, error) {
	question, err := ov.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	seen := []jsontext.Value{question, l.answer.result}
	said, err := ov.Ledger.Conversation(ctx, row)
	for _, m := range said {
		if m.From == l.above.Agent {
			seen = append(seen, m.Body)
		}
	}
	return seen, err
}

// checkSeen finds out whether an overseer has seen what it decides about: the agent may
// have answered anew since its run began. An agent that fetches its tasks can see
// messages at once.
func (ov *overseer) checkSeen(tx *transaction, t *turn) error {
	l := t.reviewRun
	if l == nil || t.row.State != task.Running {
		return nil
	}
	l.unseen = false
	said, err := tx.HeardSince(t.row, ov.history.markOf(t.row.Seq).message)
	l.unseen = slices.ContainsFunc(said, func(m task.Message) bool {
		return m.From == l.above.Agent && m.Via == task.ByRun && conversation.Resumes(m.Act)
	})
	return err
}

// reviewAgain runs an overseer again that has not seen what it decides about.
func (ov *overseer) reviewAgain(tx *transaction, t *turn) error {
	moved, err := ov.delegator.move(tx, t, &core.Wait{Task: t.row.Seq, Seen: core.See(t.row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	t.next, _, err = ov.messenger.wake(tx, t.next, map[string]any{"from": t.reviewRun.above.Agent})
	return err
}

// completeReview is the turn of an overseer.
func (ov *overseer) completeReview(tx *transaction, t *turn) (complete bool, err error) {
	l := t.reviewRun
	above, found, err := tx.Task(l.above.Seq)
	if err != nil {
		return false, err
	}
	if found && above.State == task.Review && l.unseen && (l.decision != "" || !t.waits()) {
		return true, ov.reviewAgain(tx, t)
	}
	if !found || l.decision == "" || above.State != task.Review || above.Attempt != l.above.Attempt {
		return false, nil
	}
	return true, ov.carryOutDecision(tx, t, above)
}

// carryOutDecision does what an overseer decided about an answer.
func (ov *overseer) carryOutDecision(tx *transaction, t *turn, above task.Task) error {
	l := t.reviewRun
	if l.decision == conversation.SendsBack {
		rounds, err := tx.SendBack(above.Seq)
		if err != nil {
			return err
		}
		if rounds <= ov.agents.Protocol.Rounds {
			return ov.sendBack(tx, t, rounds)
		}
		why := fmt.Sprintf("%s is still not content after %d rounds: %s", t.row.Agent, ov.agents.Protocol.Rounds, l.words)
		return ov.closeReview(tx, t, envelope.OversightRejected, why)
	}
	switch l.decision {
	case conversation.Approves:
		return ov.closeReview(tx, t, "", "")
	case conversation.Rejects:
		return ov.closeReview(tx, t, envelope.OversightRejected, t.row.Agent+" rejects it: "+l.words)
	}
	return ov.closeReview(tx, t, envelope.OversightExpired, t.row.Agent+" has not decided: "+l.words)
}

// closeReview ends the task of an overseer, and the review: the answer is shown, or
// withheld for a reason of some kind.
func (ov *overseer) closeReview(tx *transaction, t *turn, kind envelope.Kind, why string) error {
	r := t.o.Result
	if t.waits() || r.Status == "" {
		r.TaskID, r.AgentID, r.Status, r.Error = t.row.ID, t.row.Agent, envelope.OK, envelope.Error{}
		r.Output.Summary = cmp.Or(t.reviewRun.words, r.Output.Summary)
		if t.reviewRun.decision == conversation.Rejects {
			r.Status, r.Error = envelope.Failed, envelope.Error{Kind: envelope.OversightRejected, Message: r.Output.Summary}
		}
	}
	o := t.o
	o.Result, o.Hold = r, ""
	moved, err := ov.delegator.move(tx, t, &core.Finish{
		Task: t.row.Seq, Seen: core.See(t.row), Status: r.Status, Kind: r.Error.Kind, Result: r.Encode(),
		NoReview: true, Show: ending(o), Data: conclusion(o), // its words are for the agent, not for the requester
	})
	if err != nil || !moved {
		return err
	}
	if kind == "" {
		err = ov.approveOf(tx, t)
	} else {
		_, _, err = ov.endOversight(tx, t.reviewRun.above, t.reviewRun.answer, kind, why)
	}
	if err != nil {
		return err
	}
	return ov.delegator.emitAll(tx, t)
}

// approveOf shows an answer, or asks a person to approve it as well, under the terms of
// its run.
func (ov *overseer) approveOf(tx *transaction, t *turn) error {
	l := t.reviewRun
	_, _, err := ov.writer.decideOn(tx, l.above.Seq, false, &core.PassReview{
		Task: l.above.Seq, Attempt: l.above.Attempt, By: t.row.Agent, Review: t.row.ID, Words: l.words, Terms: l.terms, Result: l.answer.result,
	})
	return err
}

// sendBack runs an agent again with its overseer's question. The overseer waits for the
// reply.
func (ov *overseer) sendBack(tx *transaction, t *turn, round int) error {
	l := t.reviewRun
	moved, err := ov.delegator.move(tx, t, &core.Wait{Task: t.row.Seq, Seen: core.See(t.row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	above, moved, err := ov.writer.decideOn(tx, l.above.Seq, false, &core.SendBack{
		Task: l.above.Seq, Attempt: l.above.Attempt, By: t.row.Agent, Review: t.row.ID, Round: round, Words: l.words,
	})
	if err != nil || !moved {
		return err
	}
	asked := func(s outboundMessage) bool { return s.submission == nil && slices.Contains(s.message.To, above.Agent) }
	if !slices.ContainsFunc(t.outbound, asked) {
		if err := ov.askAgain(tx, t); err != nil {
			return err
		}
	}
	return ov.delegator.emitAll(tx, t)
}

// askAgain records an overseer's question that was its answer.
func (ov *overseer) askAgain(tx *transaction, t *turn) error {
	m := envelope.Message{
		Dialect: envelope.CAP, Act: envelope.Inquires, Task: t.row.ID, WantsReply: true, // which has an act for it
		To: []string{t.reviewRun.above.Agent}, Text: t.reviewRun.words,
	}
	return ov.messenger.emitToAll(tx, t.row, conversation.Complete(m, t.row, t.talk, dialect.NewID(), t.at), t.at)
}

// reconsiderOversight ends a review that no overseer will end any more, or none has in
// time. It reports whether an overseer is to end it at all.
func (ov *overseer) reconsiderOversight(ctx context.Context, row task.Task) (bool, error) {
	asked, found, err := ov.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPost)
	if err != nil || found && asked.Decision == task.Undecided {
		return false, err
	}
	children, err := ov.Ledger.Offspring(ctx, row.Seq)
	if err != nil {
		return true, err
	}
	open, ok := conversation.Reviewing(children)
	why := "its overseer has not approved of it"
	switch {
	case ok && !past(row.Until, time.Now()):
		ov.timers.Set(row.Seq, row.Until)
		return true, nil
	case ok:
		why = fmt.Sprintf("%s did not approve of it by %s", open.Agent, row.Until.UTC().Format(time.RFC3339))
	}
	q, err := ov.reader.about(ctx, row)
	if err != nil {
		return true, err
	}
	_, err = ov.writer.decideIfCurrent(ctx, loads(row.Seq, false, true), &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: envelope.OversightExpired, Why: why, Request: q.task, Result: q.result,
	})
	return true, err
}
