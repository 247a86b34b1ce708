package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// The controls are what operators do to tasks and agents.
type controls struct {
	*outbox.Base
	*readiness
	steps *steps
}

// Hold keeps the latest revision of a task from starting until Release. One
// that is running or done is a *StateError; an id that is not known wraps
// ledger.ErrUnknown.
func (ct *controls) Hold(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "hold", id, func(row task.Task) (task.Task, bool, error) {
		return ct.steer(ctx, row, &core.Hold{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// Release takes away what only a person can: an operator's hold, that of a
// task which may have run before the ledger was lost, and that of one whose
// agent had to be logged in. It lifts nothing else,
// and no approval. A task whose answer could not be read has it read again, and
// is not run for that. A task that is not held so is a *StateError.
func (ct *controls) Release(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "release", id, func(row task.Task) (task.Task, bool, error) {
		revisions, err := ct.Reader.Revisions(ctx, id)
		if err != nil {
			return row, false, err
		}
		if at := slices.IndexFunc(revisions, core.Unread); at >= 0 {
			row = revisions[at]
		}
		return ct.steer(ctx, row, &core.Release{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// steer gives a command about a task that doesn't run, and returns the task as it is
// then. It reports false when somebody moved the task meanwhile.
func (ct *controls) steer(ctx context.Context, row task.Task, c core.Command) (task.Task, bool, error) {
	state, err := ct.Writer.Decide(ctx, store.Loads(row.Seq, false, false), c)
	if errors.Is(err, core.ErrStale) {
		return row, false, nil
	}
	if err != nil {
		return row, false, err
	}
	return state.Task(row.Seq).Task, true, nil
}

// control does something to the latest revision of a task: again when
// somebody else moved it meanwhile, and not before Serve has recovered.
func (ct *controls) control(ctx context.Context, verb string, id envelope.ID, do func(task.Task) (task.Task, bool, error)) error {
	if err := ct.whenReady(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	for {
		row, err := ct.Reader.Newest(ctx, id)
		moved := false
		if err == nil {
			row, moved, err = do(row)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, id, err)
		}
		if moved {
			ct.steps.judgeDue(context.WithoutCancel(ctx), row)
			return nil
		}
	}
}
