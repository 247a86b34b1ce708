package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// Hold keeps the latest revision of a task from starting until Release. One
// that is running or done is a *StateError; an id that is not known wraps
// ledger.ErrUnknown.
func (d *Dispatcher) Hold(ctx context.Context, id envelope.ID, by core.By) error {
	return d.control(ctx, "hold", id, func(row task.Task) (task.Task, bool, error) {
		return d.steer(ctx, row, &core.Hold{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// Release takes away what only a person can: an operator's hold, that of a
// task which may have run before the ledger was lost, and that of one whose
// agent had to be logged in. It lifts nothing else,
// and no approval. A task whose answer could not be read has it read again, and
// is not run for that. A task that is not held so is a *StateError.
func (d *Dispatcher) Release(ctx context.Context, id envelope.ID, by core.By) error {
	return d.control(ctx, "release", id, func(row task.Task) (task.Task, bool, error) {
		revisions, err := d.Reader.Revisions(ctx, id)
		if err != nil {
			return row, false, err
		}
		if at := slices.IndexFunc(revisions, core.Unread); at >= 0 {
			row = revisions[at]
		}
		return d.steer(ctx, row, &core.Release{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// steer gives a command about a task that doesn't run, and returns the task as it is
// then. It reports false when somebody moved the task meanwhile.
func (d *Dispatcher) steer(ctx context.Context, row task.Task, c core.Command) (task.Task, bool, error) {
	state, err := d.Writer.Decide(ctx, store.Loads(row.Seq, false, false), c)
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
func (d *Dispatcher) control(ctx context.Context, verb string, id envelope.ID, do func(task.Task) (task.Task, bool, error)) error {
	if err := d.whenReady(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	for {
		row, err := d.Reader.Newest(ctx, id)
		moved := false
		if err == nil {
			row, moved, err = do(row)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, id, err)
		}
		if moved {
			d.judgeDue(context.WithoutCancel(ctx), row)
			return nil
		}
	}
}

// whenReady waits until Serve has recovered what was left over.
func (d *Dispatcher) whenReady(ctx context.Context) error {
	select {
	case <-d.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
