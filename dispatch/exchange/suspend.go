package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// maxRuns is how many runs of a task may end without an answer.
const maxRuns = 100

// suspend holds a task whose agent waits for a reply, or for the end of delegated tasks. The
// task continues at once if that came during the run.
func (cp *Completer) suspend(tx *store.Transaction, t *completion) error {
	runs, err := tx.CountRuns(t.Row.Seq, t.unanswered())
	switch {
	case err != nil:
		return err
	case runs > maxRuns:
		why := envelope.Error{Kind: envelope.PolicyViolation, Message: fmt.Sprintf("the agent has spoken %d times without an answer", runs)}
		return cp.fail(tx, t, why)
	case t.isRefused() && runs > conversation.MaxRefused:
		why := conversation.RefusedError(t.outcome.Messages)
		why.Message = fmt.Sprintf("the agent ran %d times without an answer: %s", runs, why.Message)
		return cp.fail(tx, t, why)
	case t.isRefused() && runs > 1:
		return cp.pause(tx, t, runs-1)
	}
	if returned, err := cp.Overseer.returnToReview(tx, t); returned || err != nil {
		return err
	}
	children, err := tx.Dependents(t.Row.Seq)
	if err != nil {
		return err
	}
	if names := t.staleNames(); names != "" && !slices.ContainsFunc(children, conversation.Pending) {
		return cp.fail(tx, t, envelope.Error{Kind: envelope.OutputInvalid, Message: "the agent waits for what is over already: " + names})
	}
	now := time.Now()
	wait := &core.Wait{Task: t.Row.Seq, Seen: core.See(t.Row), Reason: t.outcome.Hold, Until: t.terms.Deadline}
	if wait.Result = conversation.Question(t.outcome, t.Row.Attempt, t.conversation.Tie, children); wait.Result != nil {
		wait.Until = core.Earliest(wait.Until, now.Add(cp.Agents.Protocol.QuestionTimeout()))
	} else if !slices.ContainsFunc(children, conversation.Pending) && t.outcome.Hold == task.Reply && t.conversation.Tie != envelope.Oversee {
		wait.Until = core.Earliest(wait.Until, cp.Reader.ReplyDeadline(now))
	}
	if moved, err := cp.Delegator.emitAndMove(tx, t, wait); err != nil || !moved {
		return err
	}
	if err := cp.Delegator.wakeAll(tx, t); err != nil {
		return err
	}
	return cp.resumeAtOnce(tx, t, children)
}

// fail ends a task whose agent would never end it.
func (cp *Completer) fail(tx *store.Transaction, t *completion, why envelope.Error) error {
	t.outcome.Hold, t.outbound = "", nil
	t.outcome.Result.Status, t.outcome.Result.Output.Summary, t.outcome.Result.Error = envelope.Failed, why.Message, why
	return cp.finish(tx, t)
}

// pause holds a task whose agent has sent messages that are refused, until it runs again. The
// agent gets the replies in its next run.
func (cp *Completer) pause(tx *store.Transaction, t *completion, refused int) error {
	until := core.Earliest(t.terms.Deadline, time.Now().Add(store.Backoff(cp.Agents.Backoff(t.Row.Agent), refused)))
	why := conversation.RefusedError(t.outcome.Messages)
	data := map[string]any{"error": why.Kind, "code": why.Code, "message": why.Message}
	moved, err := cp.Delegator.emitAndMove(tx, t, &core.Retry{Task: t.Row.Seq, Until: until, Run: t.outcome.Run(t.Row), Data: data})
	if err != nil || !moved {
		return err
	}
	return cp.Delegator.wakeAll(tx, t)
}

// hasReturned reports whether mailboxd has called a tool for the run.
func (t *completion) hasReturned() bool {
	return slices.ContainsFunc(t.outbound, func(s outboundMessage) bool { return s.message.Returned != nil })
}

// isRefused reports whether the run of a task that has no answer sent a message that is refused, and no
// call of a tool that was made or decided about.
func (t *completion) isRefused() bool {
	return t.outcome.Hold == task.Reply && !t.hasReturned() && slices.ContainsFunc(t.outbound, func(s outboundMessage) bool {
		_, refused := conversation.Refuse(s.message, t.Row, t.at)
		return refused
	})
}

// unanswered returns the cause of a run without an answer.
func (t *completion) unanswered() task.Cause {
	if t.isRefused() {
		return task.CauseRefused
	}
	return task.CauseNoAnswer
}

// staleNames returns the ids of the tasks that an agent delegates, if all of them are over
// already.
func (t *completion) staleNames() string {
	if t.outcome.Hold != task.Children {
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

// resumeAtOnce resumes a task if the message or end that it waits for came during the run.
func (cp *Completer) resumeAtOnce(tx *store.Transaction, t *completion, children []task.Child) error {
	mark := cp.History.MarkOf(t.Row.Seq)
	ended := slices.DeleteFunc(slices.Clone(children), func(c task.Child) bool { return !conversation.Needed(c) || c.State != task.Done })
	arrived := t.outcome.Hold == task.Reply && len(ended) > mark.Ended && !slices.ContainsFunc(children, conversation.Pending)
	messages, err := tx.MessagesSince(t.Row, mark.Message)
	if err != nil {
		return err
	}
	for _, m := range messages {
		about, _, err := tx.Task(m.Task)
		if err != nil {
			return err
		}
		question := conversation.IsQuestion(envelope.Message{Act: m.Act, From: m.From}, about)
		arrived = arrived || conversation.Resumes(m.Act) && (t.outcome.Hold == task.Reply || question)
	}
	if !arrived {
		return nil
	}
	next, moved, err := cp.Messenger.Wake(tx, t.Next, nil)
	if moved {
		t.Next = next
	}
	return err
}

// ReevaluateSuspended checks a suspended task: whether the tasks that it needs have ended, and
// whether it may still wait or run.
func (cp *Completer) ReevaluateSuspended(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) error {
	if joined, err := cp.join(ctx, row); joined || err != nil {
		return err
	}
	if err := cp.handleUnexpectedResult(ctx, row); err != nil {
		return err
	}
	now := time.Now()
	v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: row.Deadline}}
	if row.Agent != envelope.Mailboxd {
		v = cp.Reader.Judge(t, findings, now)
	} else if core.IsPast(row.Deadline, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is over"}}}
	}
	until, asked, err := cp.replyDue(ctx, row)
	if err != nil {
		return err
	}
	if v.Admit && core.IsPast(until, now) && asked != nil {
		return cp.endSuspended(ctx, row, *asked, map[string]any{"unanswered": true})
	}
	if v.Admit && core.IsPast(until, now) {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.Timeout, Message: "nobody has replied in time"}}, Terms: v.Terms}
	}
	if !v.Admit {
		return cp.Reader.Apply(ctx, row, t, v)
	}
	cp.LookAt(row, core.Earliest(v.Deadline, until))
	return nil
}

// replyDue returns when the wait for a reply ends; zero: never. A task with open child tasks,
// or a task of an overseer, has no limit of its own. asked is the task's answer at that time,
// if its agent has asked a question.
func (cp *Completer) replyDue(ctx context.Context, row task.Task) (until time.Time, asked *envelope.Result, err error) {
	if !conversation.AwaitsReply(row) {
		return time.Time{}, nil, nil
	}
	children, err := cp.Ledger.Dependents(ctx, row.Seq)
	if err != nil || slices.ContainsFunc(children, conversation.Pending) {
		return time.Time{}, nil, err
	}
	conv, _, err := cp.Ledger.Conversation(ctx, row.Seq)
	if err != nil || conv.Tie == envelope.Oversee {
		return time.Time{}, nil, err
	}
	run, err := cp.Reader.RunOf(ctx, row)
	if err != nil || run.Finished.IsZero() {
		return time.Time{}, nil, err
	}
	wait := cp.Agents.Protocol.ReplyTimeout
	if asked, err = cp.questionOf(ctx, row); asked != nil {
		wait = cp.Agents.Protocol.QuestionTimeout()
	} else if err != nil || wait <= 0 {
		return time.Time{}, nil, err
	}
	return run.Finished.Add(wait), asked, nil
}

// handleUnexpectedResult handles a result file of a suspended task. The agent has begun the
// task, so the file is not its answer. The file is moved away when the answer needs an
// approval; otherwise one event records it.
func (cp *Completer) handleUnexpectedResult(ctx context.Context, row task.Task) error {
	file, err := cp.Box.StatResult(row.ID)
	if err != nil {
		return nil // there is no file, or a later look handles it
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
