package dispatch

import (
	"context"
	"fmt"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// RefuseControl only remembers, as the event control.refused, that somebody who
// may not wanted something: cancel, hold, and so on, of a task, or of an agent
// when id is "".
func (ct *controls) RefuseControl(ctx context.Context, verb string, id envelope.ID, who, why string) error {
	return ct.refused(ctx, task.KindControlRefused, id, map[string]any{"verb": verb, "by": who, "why": why})
}

// refused logs an event of the latest revision of a task, or of no task where
// there is none by that name.
func (ct *controls) refused(ctx context.Context, kind task.Kind, id envelope.ID, data map[string]any) error {
	row := task.Task{}
	if id != "" {
		revisions, err := ct.Ledger.Revisions(ctx, id)
		if err != nil {
			return fmt.Errorf("remember refusal of %s: %w", id, err)
		}
		if len(revisions) > 0 {
			row = revisions[len(revisions)-1]
		} else {
			data["task_id"] = id
		}
	}
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error { return tx.Log(store.Event(row, kind, data)) })
	if err != nil {
		return fmt.Errorf("remember refusal: %w", err)
	}
	return nil
}
