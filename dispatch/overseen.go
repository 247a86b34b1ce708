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

// A looking is the run of an overseer: whose answer it looks at, and what it has
// decided. Nobody else's word is any: a line may be anybody's, and so may a
// result file.
type looking struct {
	above    task.Task  // the task whose answer it is
	terms    task.Terms // of the run that gave it
	answer   decisionSubject
	decision conversation.Decision
	words    string
	unseen   bool // the agent has answered anew, and the overseer did not know
}

// goesOn reports whether the overseer is run again after this.
func (l *looking) goesOn() bool {
	return l != nil && (l.decision == conversation.SendsBack || l.unseen)
}

// inspect finds out what an overseer has decided, and on what.
func (d *Dispatcher) inspect(ctx context.Context, row task.Task, o task.Outcome) (*looking, error) {
	above, err := d.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return nil, err
	}
	l := &looking{above: above}
	if above.State != task.Review {
		return l, nil // it is too late, or too early, to decide
	}
	if l.answer, err = d.about(ctx, above); err != nil {
		return nil, err
	}
	run, err := d.runOf(ctx, above)
	if err != nil {
		return nil, err
	}
	l.terms = run.Terms
	seen, err := d.seenBy(ctx, row, l)
	l.decision, l.words = conversation.Review{
		Said: o.Said, Answer: o.Result, GoesOn: o.Hold != "", Broken: conversation.Broken(o), Dialect: d.agents.Protocol.Dialect(row.Agent),
		Worker: above.Agent, Requester: above.Requester, Tasks: []envelope.ID{row.ID, above.ID}, Seen: seen,
	}.Decide()
	return l, err
}

// seenBy is what an overseer was handed to look at: what it was asked, the answer,
// and what the agent has said about that since.
func (d *Dispatcher) seenBy(ctx context.Context, row task.Task, l *looking) ([]jsontext.Value, error) {
	question, err := d.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	seen := []jsontext.Value{question, l.answer.result}
	said, err := d.Ledger.Conversation(ctx, row)
	for _, m := range said {
		if m.From == l.above.Agent {
			seen = append(seen, m.Body)
		}
	}
	return seen, err
}

// sight finds out whether an overseer has seen what it decides about: somebody
// else may have had it go on before the agent answered anew. What lies in an
// inbox can be seen at once.
func (d *Dispatcher) sight(tx *transaction, t *turn) error {
	l := t.looked
	if l == nil || t.row.State != task.Running {
		return nil
	}
	l.unseen = false
	said, err := tx.HeardSince(t.row, d.heard.of(t.row.Seq).message)
	l.unseen = slices.ContainsFunc(said, func(m task.Message) bool {
		return m.From == l.above.Agent && m.Via == task.ByRun && conversation.Resumes(m.Act)
	})
	return err
}

// lookAgain has an overseer run again that has not seen what it decides about.
// What it said about something else is not told to anybody.
func (d *Dispatcher) lookAgain(tx *transaction, t *turn) error {
	moved, err := d.move(tx, t, &core.Wait{Task: t.row.Seq, Seen: core.See(t.row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	t.next, _, err = d.rouse(tx, t.next, map[string]any{"from": t.looked.above.Agent})
	return err
}

// takeReview is the turn of an overseer.
func (d *Dispatcher) takeReview(tx *transaction, t *turn) error {
	l := t.looked
	above, found, err := tx.Task(l.above.Seq)
	if err != nil {
		return err
	}
	if found && above.State == task.Review && l.unseen && (l.decision != "" || !t.waits()) {
		return d.lookAgain(tx, t)
	}
	if !found || l.decision == "" || above.State != task.Review || above.Attempt != l.above.Attempt {
		return d.leaveRun(tx, t)
	}
	if l.decision == conversation.SendsBack {
		rounds, err := tx.SendBack(above.Seq)
		if err != nil {
			return err
		}
		if rounds <= d.agents.Protocol.Rounds {
			return d.sendBack(tx, t, rounds)
		}
		why := fmt.Sprintf("%s is still not content after %d rounds: %s", t.row.Agent, d.agents.Protocol.Rounds, l.words)
		return d.closeReview(tx, t, envelope.OversightRejected, why)
	}
	switch l.decision {
	case conversation.Approves:
		return d.closeReview(tx, t, "", "")
	case conversation.Rejects:
		return d.closeReview(tx, t, envelope.OversightRejected, t.row.Agent+" rejects it: "+l.words)
	}
	return d.closeReview(tx, t, envelope.OversightExpired, t.row.Agent+" has not decided: "+l.words)
}

// closeReview ends the task of an overseer, and with it the review: the answer
// is shown, or withheld for a reason of some kind.
func (d *Dispatcher) closeReview(tx *transaction, t *turn, kind envelope.Kind, why string) error {
	r := t.o.Result
	if t.waits() || r.Status == "" {
		r.TaskID, r.AgentID, r.Status, r.Error = t.row.ID, t.row.Agent, envelope.OK, envelope.Error{}
		r.Output.Summary = cmp.Or(t.looked.words, r.Output.Summary)
		if t.looked.decision == conversation.Rejects {
			r.Status, r.Error = envelope.Failed, envelope.Error{Kind: envelope.OversightRejected, Message: r.Output.Summary}
		}
	}
	o := t.o
	o.Result, o.Hold = r, ""
	moved, err := d.move(tx, t, &core.Finish{
		Task: t.row.Seq, Seen: core.See(t.row), Status: r.Status, Kind: r.Error.Kind, Result: r.Encode(),
		NoReview: true, Show: ending(o), Data: conclusion(o), // what an overseer says is for the agent, not for the requester
	})
	if err != nil || !moved {
		return err
	}
	if kind == "" {
		err = d.approveOf(tx, t)
	} else {
		_, _, err = d.endOversight(tx, t.looked.above, t.looked.answer, kind, why)
	}
	if err != nil {
		return err
	}
	return d.utterAll(tx, t)
}

// approveOf lets an answer out of review, or has a person agree to it as well, if
// the terms of its run say so.
func (d *Dispatcher) approveOf(tx *transaction, t *turn) error {
	l := t.looked
	_, _, err := d.decideOn(tx, l.above.Seq, false, &core.PassReview{
		Task: l.above.Seq, Attempt: l.above.Attempt, By: t.row.Agent, Review: t.row.ID, Words: l.words, Terms: l.terms, Result: l.answer.result,
	})
	return err
}

// sendBack has an agent run again with what its overseer asks it. The overseer
// waits for its reply.
func (d *Dispatcher) sendBack(tx *transaction, t *turn, round int) error {
	l := t.looked
	moved, err := d.move(tx, t, &core.Wait{Task: t.row.Seq, Seen: core.See(t.row), Reason: task.Reply, Until: t.terms.Deadline})
	if err != nil || !moved {
		return err
	}
	above, moved, err := d.decideOn(tx, l.above.Seq, false, &core.SendBack{
		Task: l.above.Seq, Attempt: l.above.Attempt, By: t.row.Agent, Review: t.row.ID, Round: round, Words: l.words,
	})
	if err != nil || !moved {
		return err
	}
	asked := func(s saying) bool { return s.claim == nil && slices.Contains(s.message.To, above.Agent) }
	if !slices.ContainsFunc(t.said, asked) {
		if err := d.askAgain(tx, t); err != nil {
			return err
		}
	}
	return d.utterAll(tx, t)
}

// askAgain records the question of an overseer that it said as its answer.
func (d *Dispatcher) askAgain(tx *transaction, t *turn) error {
	m := envelope.Message{
		Dialect: envelope.CAP, Act: envelope.Inquires, Task: t.row.ID, WantsReply: true, // which has a word for it
		To: []string{t.looked.above.Agent}, Text: t.looked.words,
	}
	return d.sendOn(tx, t.row, conversation.Complete(m, t.row, t.talk, dialect.NewID(), t.at), t.at)
}

// reconsiderOversight ends a review that no overseer will end any more, or has
// not in time. It reports whether an overseer is to end it at all.
func (d *Dispatcher) reconsiderOversight(ctx context.Context, row task.Task) (bool, error) {
	asked, found, err := d.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPost)
	if err != nil || found && asked.Decision == task.Undecided {
		return false, err
	}
	children, err := d.Ledger.Offspring(ctx, row.Seq)
	if err != nil {
		return true, err
	}
	open, ok := conversation.Reviewing(children)
	why := "its overseer has not approved of it"
	switch {
	case ok && !past(row.Until, time.Now()):
		d.timers.Set(row.Seq, row.Until)
		return true, nil
	case ok:
		why = fmt.Sprintf("%s did not approve of it by %s", open.Agent, row.Until.UTC().Format(time.RFC3339))
	}
	q, err := d.about(ctx, row)
	if err != nil {
		return true, err
	}
	_, err = d.decideIfCurrent(ctx, loads(row.Seq, false, true), &core.FailReview{
		Task: row.Seq, Attempt: row.Attempt, Kind: envelope.OversightExpired, Why: why, Request: q.task, Result: q.result,
	})
	return true, err
}
