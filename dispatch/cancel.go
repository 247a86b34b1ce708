package dispatch

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// Cancel ends a task with status cancelled: all of its revisions that are not
// done. What has not started is over at once; a run is ended, and Cancel
// returns when nothing is left of it, or with the cause of ctx. The answer of
// one in review is not shown. A task that is done is a *StateError, also when its run came to an end of its own first.
func (ct *controls) Cancel(ctx context.Context, id envelope.ID, by core.By) error {
	err := ct.whenReady(ctx)
	for did := false; err == nil; {
		var row task.Task
		if row, err = ct.Reader.NewestOpen(ctx, id); err != nil {
			break
		}
		if row.State == task.Done {
			if did {
				return nil
			}
			err = core.StateErrorOf(row)
			break
		}
		var ended bool
		ended, err = ct.Canceller.CancelOne(ctx, row, by)
		did = did || ended
	}
	return fmt.Errorf("cancel %s: %w", id, err)
}
