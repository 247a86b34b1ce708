package exchange

import (
	"context"
	"errors"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A sender may give several requests one idempotency key. The first one is carried out. Each
// later one follows it: it is held as same_command, and ends with the outcome of the first one
// (CLUTCH-52).

// endFollowers ends the tasks that get the outcome of a task that is done.
func (cp *Completer) endFollowers(ctx context.Context, leader task.Task) {
	open, err := cp.Ledger.Followers(ctx, leader.ID)
	for _, row := range open {
		if err == nil {
			_, err = cp.follow(ctx, row)
		}
	}
	if err != nil && ctx.Err() == nil {
		cp.FaultLog.Report(store.Judging, leader, err)
		cp.Timers.After(leader.Seq, store.RetryPause)
	}
}

// follow ends a task with the outcome of the task that it follows, if that is done. It reports
// whether the task has ended.
func (cp *Completer) follow(ctx context.Context, row task.Task) (bool, error) {
	name, found, err := cp.Ledger.Leader(ctx, row.ID)
	if err != nil || !found {
		return false, err
	}
	leader, err := cp.Reader.Newest(ctx, name)
	if err != nil || leader.State != task.Done {
		return false, err
	}
	r, err := cp.History.AnswerOfChild(ctx, leader)
	if errors.Is(err, ledger.ErrUnknown) {
		r, err = conversation.ResultOf(leader, nil), nil // retention has removed it
	}
	if err != nil {
		return false, err
	}
	return true, cp.endFollower(ctx, row, conversation.Same(row, leader, r), leader.ID)
}

// endFollower ends a task with a result that needs no review: the task that it follows had one.
func (cp *Completer) endFollower(ctx context.Context, row task.Task, r envelope.Result, leader envelope.ID) error {
	finish := &core.Finish{
		Task: row.Seq, Seen: core.See(row), Status: r.Status, Kind: r.Error.Kind, Result: r.Encode(), NoReview: true,
		Show: task.Outcome{Result: r}.EndKind(), Data: map[string]any{"status": r.Status, "of": leader},
	}
	_, err := cp.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), finish)
	return err
}

// ReevaluateFollower checks a task that follows another one: whether that is done, and whether
// the task may still wait.
func (cp *Completer) ReevaluateFollower(ctx context.Context, row task.Task, t envelope.Task) error {
	if ended, err := cp.follow(ctx, row); ended || err != nil {
		return err
	}
	if core.IsPast(row.Deadline, time.Now()) {
		late := envelope.Finding{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is over"}
		return cp.Reader.Apply(ctx, row, t, task.Verdict{Findings: envelope.Findings{late}})
	}
	return nil
}
