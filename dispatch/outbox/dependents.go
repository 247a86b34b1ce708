package outbox

import (
	"context"
	"sync"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// Dependents knows which tasks have others below them that end with them, so that
// nobody has to look for those of each task that ends.
type Dependents struct {
	mu  sync.Mutex // guards all
	all map[int64]struct{}
}

// NewDependents returns Dependents without tasks.
func NewDependents() *Dependents { return &Dependents{all: map[int64]struct{}{}} }

// Add notes that a task may have others below it that end with it.
func (k *Dependents) Add(above int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[above] = struct{}{}
}

// Remove forgets a task, and reports whether it may have others below.
func (k *Dependents) Remove(above int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, has := k.all[above]
	delete(k.all, above)
	return has
}

// CancelDependents stops what is below a task that is over and does not go on without it.
// What its agent handed on and then did without is a fork from now on.
func (cn *Canceller) CancelDependents(ctx context.Context, row task.Task) error {
	children, err := cn.Ledger.Dependents(ctx, row.Seq)
	if err != nil {
		return err
	}
	for _, c := range children {
		if conversation.EndsWith(c, row) {
			if err := cn.stop(ctx, c.Task, core.By{Who: envelope.Ourselves, Reason: "the task " + string(row.ID) + " above it is over"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop cancels a task, and does not wait for the end of its run: should the task
// go on after that, StopAgain is there.
func (cn *Canceller) stop(ctx context.Context, row task.Task, by core.By) error {
	for {
		now, err := cn.Ledger.Task(ctx, row.Seq)
		if err != nil || now.State == task.Done {
			return err
		}
		if now.State == task.Running {
			if did, err := cn.StopRun(ctx, now, by); did || err != nil {
				return err
			}
			continue
		}
		if did, err := cn.CancelOne(ctx, now, by); did || err != nil {
			return err
		}
	}
}

// StopRun ends the run of a task, and reports whether it did, or nobody here has
// that run. It did not when the run was over meanwhile, and the task may go on.
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

// StopAgain cancels a task whose run was cancelled when it had come to an end of
// its own: its agent has said something to go on with, or is to try again.
func (cn *Canceller) StopAgain(ctx context.Context, r *store.Run) {
	if why, cancelled := r.Cancelled(); cancelled && r.Stopped.Load() {
		cn.CancelFor(ctx, task.Task{Seq: r.Item.Seq}, why.By.Who, why.By.Reason)
	}
}

// RecoverDependents takes up what ties an unfinished task to the one above it. That
// one may have ended without it.
func (cn *Canceller) RecoverDependents(ctx context.Context, row task.Task) error {
	if row.Parent == 0 {
		return nil
	}
	conv, _, err := cn.Ledger.Conversation(ctx, row.Seq)
	if err != nil || !conversation.Dependent(conv.Tie) {
		return err
	}
	above, err := cn.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return err
	}
	cn.dependents.Add(above.Seq)
	if above.State == task.Done {
		cn.Timers.After(above.Seq, 0) // when all runs are found
	}
	return nil
}
