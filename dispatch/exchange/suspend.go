package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// maxTurns is how many runs of a task may end without an answer.
const maxTurns = 100

// suspend holds a task whose agent waits for a reply, or for the end of what it
// delegated. If that came while the agent ran, the task goes on at once.
func (cp *Completion) suspend(tx *store.Transaction, t *turn) error {
	turns, err := tx.Spoken(t.Row.Seq)
	if err != nil {
		return err
	}
	if turns > maxTurns {
		return cp.giveUp(tx, t, envelope.PolicyViolation, fmt.Sprintf("the agent has spoken %d times without an answer", turns))
	}
	if back, err := cp.Overseer.returnToReview(tx, t); back || err != nil {
		return err
	}
	children, err := tx.Offspring(t.Row.Seq)
	if err != nil {
		return err
	}
	if names := t.stale(); names != "" && !slices.ContainsFunc(children, conversation.Pending) {
		return cp.giveUp(tx, t, envelope.OutputInvalid, "the agent waits for what is over already: "+names)
	}
	now := time.Now()
	wait := &core.Wait{Task: t.Row.Seq, Seen: core.See(t.Row), Reason: t.o.Hold, Until: t.terms.Deadline}
	if wait.Result = conversation.Question(t.o, t.Row.Attempt, t.talk.Tie, children); wait.Result != nil {
		wait.Until = core.Earliest(wait.Until, now.Add(cp.Agents.Protocol.QuestionTimeout()))
	} else if !slices.ContainsFunc(children, conversation.Pending) && t.o.Hold == task.Reply && t.talk.Tie != envelope.Oversee {
		wait.Until = core.Earliest(wait.Until, cp.Reader.Patience(now))
	}
	if moved, err := cp.Delegator.move(tx, t, wait); err != nil || !moved {
		return err
	}
	if err := cp.Delegator.emitAll(tx, t); err != nil {
		return err
	}
	return cp.resumeAtOnce(tx, t, children)
}

// giveUp ends a task whose agent would never end it.
func (cp *Completion) giveUp(tx *store.Transaction, t *turn, kind envelope.Kind, why string) error {
	t.o.Hold, t.outbound = "", nil
	t.o.Result.Status = envelope.Failed
	t.o.Result.Error = envelope.Error{Kind: kind, Message: why}
	return cp.leaveRun(tx, t)
}

// stale names what an agent delegates, if all of it is over already.
func (t *turn) stale() string {
	if t.o.Hold != task.Children {
		return ""
	}
	var names []string
	for _, s := range t.outbound {
		switch {
		case s.submission != nil && !s.stale:
			return ""
		case s.submission != nil:
			names = append(names, string(s.submission.Task.ID))
		}
	}
	return strings.Join(names, ", ")
}

// resumeAtOnce resumes a task if what it waits for came while its agent ran.
func (cp *Completion) resumeAtOnce(tx *store.Transaction, t *turn, children []task.Child) error {
	mark := cp.History.MarkOf(t.Row.Seq)
	over := slices.DeleteFunc(slices.Clone(children), func(c task.Child) bool { return !conversation.Needed(c) || c.State != task.Done })
	news := t.o.Hold == task.Reply && len(over) > mark.Ended && !slices.ContainsFunc(children, conversation.Pending)
	messages, err := tx.HeardSince(t.Row, mark.Message)
	if err != nil {
		return err
	}
	for _, m := range messages {
		about, _, err := tx.Task(m.Task)
		if err != nil {
			return err
		}
		question := conversation.IsQuestion(envelope.Message{Act: m.Act, From: m.From}, about)
		news = news || conversation.Resumes(m.Act) && (t.o.Hold == task.Reply || question)
	}
	if !news {
		return nil
	}
	next, moved, err := cp.Messenger.Wake(tx, t.Next, nil)
	if moved {
		t.Next = next
	}
	return err
}

// ReconsiderWords looks at a suspended task: whether what it waits for has ended, and
// whether it may still wait, or run.
func (cp *Completion) ReconsiderWords(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) error {
	if joined, err := cp.join(ctx, row); joined || err != nil {
		return err
	}
	if err := cp.reportStray(ctx, row); err != nil {
		return err
	}
	now := time.Now()
	v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: row.Deadline}}
	if row.Agent != envelope.Ourselves {
		v = cp.Reader.Judge(t, findings, now)
	} else if store.Past(row.Deadline, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is over"}}}
	}
	until, asked, err := cp.replyDue(ctx, row)
	if err != nil {
		return err
	}
	if v.Admit && store.Past(until, now) && asked != nil {
		return cp.endHeld(ctx, row, *asked, map[string]any{"unanswered": true})
	}
	if v.Admit && store.Past(until, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.Timeout, Message: "nobody has replied in time"}}, Terms: v.Terms}
	}
	if !v.Admit {
		return cp.Reader.Apply(ctx, row, t, v)
	}
	cp.Timers.Set(row.Seq, core.Earliest(v.Deadline, until))
	return nil
}

// replyDue returns until when a task waits for a reply; zero is without end. A task with
// tasks below it, or one of an overseer, waits as long as these may. Asked is its answer
// then, if its agent has asked a question.
func (cp *Completion) replyDue(ctx context.Context, row task.Task) (until time.Time, asked *envelope.Result, err error) {
	if !conversation.AwaitsReply(row) {
		return time.Time{}, nil, nil
	}
	children, err := cp.Ledger.Offspring(ctx, row.Seq)
	if err != nil || slices.ContainsFunc(children, conversation.Pending) {
		return time.Time{}, nil, err
	}
	talk, _, err := cp.Ledger.Talk(ctx, row.Seq)
	if err != nil || talk.Tie == envelope.Oversee {
		return time.Time{}, nil, err
	}
	run, err := cp.Reader.RunOf(ctx, row)
	if err != nil || run.Finished.IsZero() {
		return time.Time{}, nil, err
	}
	wait := cp.Agents.Protocol.Patience
	if asked, err = cp.askedBy(ctx, row); asked != nil {
		wait = cp.Agents.Protocol.QuestionTimeout()
	} else if err != nil || wait <= 0 {
		return time.Time{}, nil, err
	}
	return run.Finished.Add(wait), asked, nil
}

// reportStray deals with a result file of a suspended task: its agent has begun it, so
// the file is not the answer. The file is moved away when the answer needs an approval,
// and otherwise an event says once that it is there.
func (cp *Completion) reportStray(ctx context.Context, row task.Task) error {
	file, err := cp.Box.StatResult(row.ID)
	if err != nil {
		return nil // nothing is there, or a later look finds out
	}
	need, err := cp.Reader.ApprovalNeed(ctx, row, file)
	switch {
	case err != nil:
		return err
	case need.Before || need.After:
		return cp.Publisher.Guard(ctx, row)
	}
	return cp.Publisher.ConflictOnce(ctx, row)
}
