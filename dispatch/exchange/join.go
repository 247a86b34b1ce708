package exchange

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// TaskEnded applies the effects of a task's end on its parent and its dependents. It may run at
// any time, and runs at least once after a start.
func (cp *Completer) TaskEnded(ctx context.Context, row task.Task) {
	cp.History.ForgetMark(row.Seq)
	if err := cp.Canceller.CancelDependents(ctx, row); err != nil {
		cp.FaultLog.Report(store.Judging, row, err)
		cp.Timers.After(row.Seq, store.RetryPause)
	}
	if row.Parent != 0 {
		cp.TryJoin(ctx, row.Parent)
	}
	if row.Dialect == envelope.Clutch {
		cp.endFollowers(ctx, row)
	}
}

// TryJoin resumes a task that waits for the end of other tasks, if they have ended.
func (cp *Completer) TryJoin(ctx context.Context, seq int64) {
	row, err := cp.Ledger.Task(ctx, seq)
	switch {
	case err != nil:
	case conversation.Suspended(row):
		_, err = cp.join(ctx, row)
	case conversation.Follows(row):
		_, err = cp.follow(ctx, row)
	case row.State == task.Review:
		err = cp.Overseer.ReevaluateReview(ctx, row)
	}
	if err != nil && ctx.Err() == nil {
		cp.FaultLog.Report(store.Judging, row, err)
		cp.Timers.After(seq, store.RetryPause)
	}
}

// join resumes a suspended task if the tasks that it needs have ended. The outcome of a
// transferred task is its own outcome, the answers of several agents are combined, and
// otherwise its agent runs again. It reports whether it resumed or ended the task.
func (cp *Completer) join(ctx context.Context, row task.Task) (bool, error) {
	children, err := cp.Ledger.Dependents(ctx, row.Seq)
	if err != nil {
		return false, err
	}
	if last, ok := conversation.Tied(children, envelope.Transfer); ok {
		if last.State != task.Done {
			return false, nil
		}
		return true, cp.transfer(ctx, row, last)
	}
	if slices.ContainsFunc(children, conversation.Pending) {
		return false, nil
	}
	if row.Agent == envelope.Mailboxd {
		return true, cp.combine(ctx, row, children)
	}
	if conversation.AwaitsReply(row) {
		run, err := cp.Reader.RunOf(ctx, row)
		since := func(c task.Child) bool { return conversation.Needed(c) && c.Finished.After(run.Finished) }
		if err != nil || !slices.ContainsFunc(children, since) {
			return false, err
		}
	}
	return cp.resumeJoined(ctx, row)
}

// resumeJoined resumes a task whose children have ended.
func (cp *Completer) resumeJoined(ctx context.Context, row task.Task) (bool, error) {
	moved := false
	err := cp.Writer.Update(ctx, func(tx *store.Transaction) error {
		moved = false
		same, err := store.Unmoved(tx, row)
		if err == nil && same {
			_, moved, err = cp.Messenger.Wake(tx, row, nil)
		}
		return err
	})
	return moved, err
}

// transfer ends a task with the outcome of the task that its agent transferred it to
// (CLOWL-31). The outcome is reviewed like an answer of that agent.
func (cp *Completer) transfer(ctx context.Context, row task.Task, from task.Child) error {
	r, err := cp.History.AnswerOfChild(ctx, from.Task)
	if err != nil {
		return err
	}
	r.TaskID = row.ID
	if r.Status == envelope.Rejected {
		r.Status = envelope.Failed // the agent of this task ran
	}
	if r.Extra == nil {
		r.Extra, _ = json.Marshal(map[string]any{"mbx.answered_as": from.ID})
	}
	return cp.endSuspended(ctx, row, r, map[string]any{"of": from.ID})
}

// combine ends a task of several agents with their combined answers.
func (cp *Completer) combine(ctx context.Context, row task.Task, children []task.Child) error {
	var members []conversation.Member
	for _, c := range children {
		if c.Tie != envelope.Member {
			continue
		}
		r, err := cp.History.AnswerOfChild(ctx, c.Task)
		if err != nil {
			return err
		}
		members = append(members, conversation.Member{Agent: c.Agent, Result: r})
	}
	r := conversation.Combine(row.ID, members)
	r.Time = envelope.TimeUsed{Started: row.Received, Finished: time.Now()}
	r.Time.Wall = r.Time.Finished.Sub(r.Time.Started)
	return cp.endSuspended(ctx, row, r, map[string]any{"members": len(members)})
}

// endSuspended ends a suspended task with an answer of other agents.
func (cp *Completer) endSuspended(ctx context.Context, row task.Task, r envelope.Result, data map[string]any) error {
	run, err := cp.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	o := task.Outcome{Result: r, Exit: task.Exit{Started: run.Started, Finished: run.Finished}}
	t, err := cp.Prepare(ctx, row, run.Terms, o)
	if err != nil {
		return err
	}
	data["status"] = r.Status
	if r.Error != (envelope.Error{}) {
		data["error"], data["message"] = r.Error.Kind, r.Error.Message
	}
	t.Event = store.Event(row, o.EndKind(), data)
	return cp.commitIfUnmoved(ctx, t)
}

// A CAP agent may ask its requester a question: a message that ends with a question mark.
// Without a reply within conversation.question_timeout, the message is the answer. The ledger
// has that answer from the end of the run on, as the result of a task that is not done.

// questionOf returns the answer of a task if no reply comes to the question of its agent's last
// run; nil for none.
func (cp *Completer) questionOf(ctx context.Context, row task.Task) (*envelope.Result, error) {
	if row.ResultSum == "" {
		return nil, nil
	}
	raw, err := cp.Ledger.Result(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return conversation.Unanswered(raw, row.Attempt), nil
}
