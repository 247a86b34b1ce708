package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A Canceller cancels tasks and their dependents.
type Canceller struct {
	*store.Shared
	writer    *store.Writer
	reader    *store.Reader
	messenger *Messenger
}

// CancelOne cancels one revision. It reports false when the task was moved meanwhile.
func (cn *Canceller) CancelOne(ctx context.Context, row task.Task, by core.By) (bool, error) {
	if row.State == task.Running {
		return cn.cancelRun(ctx, row, by)
	}
	q, err := cn.reader.About(ctx, row)
	if err != nil {
		return false, err
	}
	follow, err := cn.endCancelled(ctx, row, q, by)
	if errors.Is(err, core.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cn.Log(row).Info().Str("by", by.Who).Msg("task cancelled")
	cn.writer.OnCommitted(ctx, follow)
	return true, nil
}

// endCancelled ends a cancelled task, and notifies the agent that has it in its inbox. The lock
// keeps other goroutines from appending the task's line meanwhile.
func (cn *Canceller) endCancelled(ctx context.Context, row task.Task, q store.DecisionSubject, by core.By) (store.Consequences, error) {
	defer cn.ResultLocks.Lock(row.ID)()
	return cn.writer.Commit(ctx, func(tx *store.Transaction) error {
		state, err := store.TaskLoader(row.Seq, q.Began, true)(tx)
		if err != nil {
			return err
		}
		answer, err := cn.writer.DecideIn(tx, state, &core.Cancel{
			Task: row.Seq, Seen: core.See(row), By: by, Request: q.Task, Levels: q.Verdict.Levels, Result: q.Result,
		}, time.Now())
		if err = cmp.Or(err, answer); err != nil {
			return err
		}
		return cn.messenger.recallTask(tx, row, by)
	})
}

// cancelRun ends a run and waits until it is over.
func (cn *Canceller) cancelRun(ctx context.Context, row task.Task, by core.By) (bool, error) {
	runs := cn.Runs.Of(row.Seq)
	for _, r := range runs {
		r.End(&store.CancelError{By: by})
	}
	if err := store.Await(ctx, runs); err != nil {
		return false, fmt.Errorf("its run is still being ended: %w", err)
	}
	now, err := cn.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil:
		return false, err
	case now.State == task.Running && now.Attempt == row.Attempt:
		return false, errElsewhere
	}
	return now.State == task.Done && now.Kind == envelope.Cancelled, nil
}

// errElsewhere says that no component here has the run, as during a shutdown.
var errElsewhere = errors.New("its run is being handed over; try again")

// CancelFor cancels a task because of a message. It doesn't wait for the end of the run.
func (cn *Canceller) CancelFor(ctx context.Context, row task.Task, from, message string) {
	if err := cn.stop(context.WithoutCancel(ctx), row, core.By{Who: from, Reason: message}); err != nil {
		cn.Log(row).Warn().Err(err).Msg("task not cancelled; it will be at the next start")
	}
}

// CancelAgain continues, after a start, the cancellations that messages ask for.
func (cn *Canceller) CancelAgain(ctx context.Context) error {
	messages, err := cn.Ledger.Cancelled(ctx)
	for _, m := range messages {
		cn.CancelFor(ctx, task.Task{Seq: m.Task}, m.From, m.ID)
	}
	return err
}

// MayCancel reports whether a participant may cancel a task: the participant requested the task
// or one of its ancestors, or is the agent of an ancestor.
func MayCancel(tx *store.Transaction, row task.Task, by string) (bool, error) {
	for row.Seq != 0 {
		if row.Requester == by {
			return true, nil
		}
		parent, _, err := tx.Task(row.Parent)
		if err != nil {
			return false, err
		}
		if row = parent; row.Agent == by {
			return true, nil
		}
	}
	return false, nil
}
