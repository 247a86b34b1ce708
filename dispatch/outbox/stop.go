package outbox

import (
	"context"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// CancelDependents cancels the dependents of a task that is over: child tasks that end with it. A
// child task whose answer the agent did not wait for is a fork from now on.
func (cn *Canceller) CancelDependents(ctx context.Context, row task.Task) error {
	children, err := cn.Ledger.Dependents(ctx, row.Seq)
	if err != nil {
		return err
	}
	for _, c := range children {
		if conversation.EndsWith(c, row) {
			if err := cn.stop(ctx, c.Task, core.By{Who: envelope.Mailboxd, Reason: "the task " + string(row.ID) + " above it is over"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop cancels a task, and does not wait for the end of its run. StopAgain handles a task that
// continues after that.
func (cn *Canceller) stop(ctx context.Context, row task.Task, by core.By) error {
	for {
		now, err := cn.Ledger.Task(ctx, row.Seq)
		if err != nil || now.State == task.Done {
			return err
		}
		if now.State == task.Running {
			if stopped, err := cn.StopRun(ctx, now, by); stopped || err != nil {
				return err
			}
			continue
		}
		if stopped, err := cn.CancelOne(ctx, now, by); stopped || err != nil {
			return err
		}
	}
}

// StopRun ends the run of a task. It also reports true when no component here has the run, and
// false when the run was over meanwhile, so that the task may continue.
func (cn *Canceller) StopRun(ctx context.Context, row task.Task, by core.By) (bool, error) {
	runs, missed := cn.Runs.Of(row.Seq), false
	for _, r := range runs {
		missed = !r.Stop(by) || missed
	}
	if len(runs) > 0 {
		return !missed, nil
	}
	now, err := cn.Ledger.Task(ctx, row.Seq)
	return now.State == task.Running && now.Attempt == row.Attempt, err
}

// StopAgain cancels a task whose run had ended by itself before the cancellation: the run's
// outcome may let the task continue or try again.
func (cn *Canceller) StopAgain(ctx context.Context, r *store.Run) {
	if why, cancelled := r.Cancelled(); cancelled && r.Stopped.Load() {
		cn.CancelFor(ctx, task.Task{Seq: r.Item.Seq}, why.By.Who, why.By.Reason)
	}
}

// RecoverDependents has an unfinished task cancelled whose parent has ended, if it depends on that.
func (cn *Canceller) RecoverDependents(ctx context.Context, row task.Task) error {
	if row.Parent == 0 {
		return nil
	}
	conv, _, err := cn.Ledger.Conversation(ctx, row.Seq)
	if err != nil || !conversation.Dependent(conv.Tie) {
		return err
	}
	parent, err := cn.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return err
	}
	if parent.State == task.Done {
		cn.Timers.Now(parent.Seq) // fires when recovery has found all runs
	}
	return nil
}
