package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// mostTurns is how often an agent may speak about a task without an answer:
// enough for any talk, and an end to one that goes round in circles.
const mostTurns = 100

// holdForWords makes a task wait whose agent has spoken: for a reply, or for
// the end of what it handed on. When that came while it spoke, it goes on at once.
func (d *Dispatcher) holdForWords(tx *transaction, t *turn) error {
	turns, err := tx.Spoken(t.row.Seq)
	if err != nil {
		return err
	}
	if turns > mostTurns {
		return d.giveUp(tx, t, envelope.PolicyViolation, fmt.Sprintf("the agent has spoken %d times without an answer", turns))
	}
	if back, err := d.backToReview(tx, t); back || err != nil {
		return err
	}
	children, err := tx.Offspring(t.row.Seq)
	if err != nil {
		return err
	}
	if names := t.stale(); names != "" && !slices.ContainsFunc(children, conversation.Pending) {
		return d.giveUp(tx, t, envelope.OutputInvalid, "the agent waits for what is over already: "+names)
	}
	now := time.Now()
	wait := &core.Wait{Task: t.row.Seq, Seen: core.See(t.row), Reason: t.o.Hold, Until: t.terms.Deadline}
	if wait.Result = conversation.Question(t.o, t.row.Attempt, t.talk.Tie, children); wait.Result != nil {
		wait.Until = core.Earliest(wait.Until, now.Add(d.agents.Protocol.QuestionTimeout()))
	} else if !slices.ContainsFunc(children, conversation.Pending) && t.o.Hold == task.Reply && t.talk.Tie != envelope.Oversee {
		wait.Until = core.Earliest(wait.Until, d.patience(now))
	}
	if moved, err := d.move(tx, t, wait); err != nil || !moved {
		return err
	}
	if err := d.utterAll(tx, t); err != nil {
		return err
	}
	return d.goOnAtOnce(tx, t, children)
}

// giveUp ends a task whose agent would only go round in circles.
func (d *Dispatcher) giveUp(tx *transaction, t *turn, kind envelope.Kind, why string) error {
	t.o.Hold, t.said = "", nil
	t.o.Result.Status = envelope.Failed
	t.o.Result.Error = envelope.Error{Kind: kind, Message: why}
	return d.leaveRun(tx, t)
}

// stale names what an agent hands on, if it waits for nothing that is not over.
func (t *turn) stale() string {
	if t.o.Hold != task.Children {
		return ""
	}
	var names []string
	for _, s := range t.said {
		switch {
		case s.claim != nil && !s.stale:
			return ""
		case s.claim != nil:
			names = append(names, string(s.claim.task.ID))
		}
	}
	return strings.Join(names, ", ")
}

// goOnAtOnce lets a task go on that was held for what has come already while its
// agent spoke.
func (d *Dispatcher) goOnAtOnce(tx *transaction, t *turn, children []task.Child) error {
	heard := d.heard.of(t.row.Seq)
	over := slices.DeleteFunc(slices.Clone(children), func(c task.Child) bool { return !conversation.Needed(c) || c.State != task.Done })
	news := t.o.Hold == task.Reply && len(over) > heard.ended && !slices.ContainsFunc(children, conversation.Pending)
	messages, err := tx.HeardSince(t.row, heard.message)
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
	next, moved, err := d.rouse(tx, t.next, nil)
	if moved {
		t.next = next
	}
	return err
}

// patience is until when somebody has to have said something who is asked now;
// zero is for ever.
func (d *Dispatcher) patience(now time.Time) time.Time {
	if d.agents.Protocol.Patience <= 0 {
		return time.Time{}
	}
	return now.Add(d.agents.Protocol.Patience)
}

// reconsiderWords looks at a task that waits for words: whether what it needs
// has ended, whether it may wait any longer, whether it still may be run at all.
func (d *Dispatcher) reconsiderWords(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) error {
	if joined, err := d.join(ctx, row); joined || err != nil {
		return err
	}
	if err := d.tellOfStray(ctx, row); err != nil {
		return err
	}
	now := time.Now()
	v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: row.Deadline}}
	if row.Agent != envelope.Ourselves {
		v = d.judge(t, findings, now)
	} else if past(row.Deadline, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is over"}}}
	}
	until, asked, err := d.wordsDue(ctx, row)
	if err != nil {
		return err
	}
	if v.Admit && past(until, now) && asked != nil {
		return d.endHeld(ctx, row, *asked, map[string]any{"unanswered": true})
	}
	if v.Admit && past(until, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.Timeout, Message: "nobody has replied in time"}}, Terms: v.Terms}
	}
	if !v.Admit {
		return d.apply(ctx, row, t, v)
	}
	d.timers.Set(row.Seq, core.Earliest(v.Deadline, until))
	return nil
}

// wordsDue is until when a task waits for a reply; zero is for ever. Whoever has
// tasks below, or oversees another, waits as long as these have time. What its agent
// asked, if anything, is its answer then.
func (d *Dispatcher) wordsDue(ctx context.Context, row task.Task) (until time.Time, asked *envelope.Result, err error) {
	if !conversation.AwaitsReply(row) {
		return time.Time{}, nil, nil
	}
	children, err := d.Ledger.Offspring(ctx, row.Seq)
	if err != nil || slices.ContainsFunc(children, conversation.Pending) {
		return time.Time{}, nil, err
	}
	talk, _, err := d.Ledger.Talk(ctx, row.Seq)
	if err != nil || talk.Tie == envelope.Oversee {
		return time.Time{}, nil, err
	}
	run, err := d.runOf(ctx, row)
	if err != nil || run.Finished.IsZero() {
		return time.Time{}, nil, err
	}
	wait := d.agents.Protocol.Patience
	if asked, err = d.askedBy(ctx, row); asked != nil {
		wait = d.agents.Protocol.QuestionTimeout()
	} else if err != nil || wait <= 0 {
		return time.Time{}, nil, err
	}
	return run.Finished.Add(wait), asked, nil
}

// tellOfStray deals with a result file that lies there for a task that waits for
// words: its agent has begun it, so the file is not taken for its answer. It is
// moved away when the answer needs an approval, and else an event says once that
// the file is there.
func (d *Dispatcher) tellOfStray(ctx context.Context, row task.Task) error {
	file, err := d.Box.StatResult(row.ID)
	if err != nil {
		return nil // nothing is there, or a later look finds out
	}
	need, err := d.approvalNeed(ctx, row, file)
	switch {
	case err != nil:
		return err
	case need.before || need.after:
		return d.guard(ctx, row)
	}
	return d.conflictOnce(ctx, row)
}
