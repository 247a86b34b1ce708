package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// HoldRestored holds every open task of a ledger that was restored from a backup, and has the
// ledger remember the restoration. No daemon may have opened the ledger yet. It returns the
// tasks that wait for a release.
func HoldRestored(ctx context.Context, l *ledger.Ledger, backup time.Time) (held []task.Task, err error) {
	agents := store.Agents{ApprovalTTL: func() time.Duration { return 0 }}
	w := &store.Writer{Shared: store.NewShared(store.Parts{Ledger: l}, agents, store.Options{})}
	open, err := openTasks(ctx, l)
	if err == nil {
		_, err = w.Commit(ctx, func(tx *store.Transaction) error {
			if held, err = holdRestored(tx, w, open); err != nil {
				return err
			}
			return tx.NoteRestored(backup, time.Now())
		})
	}
	if err != nil {
		return nil, fmt.Errorf("hold the tasks of a restored ledger: %w", err)
	}
	return held, nil
}

// openTasks returns the Seqs of all revisions that are not done.
func openTasks(ctx context.Context, l *ledger.Ledger) (open []int64, err error) {
	for after, more := int64(0), true; more && err == nil; {
		var rows []task.Task
		rows, err = l.Unfinished(ctx, after, store.PageSize)
		for _, row := range rows {
			open, after = append(open, row.Seq), row.Seq
		}
		more = len(rows) == store.PageSize
	}
	for after, more := int64(0), true; more && err == nil; {
		var rows []ledger.QueuedTask
		rows, err = l.QueuedTasks(ctx, after, store.PageSize)
		for _, row := range rows {
			open, after = append(open, row.Seq), row.Seq
		}
		more = len(rows) == store.PageSize
	}
	return open, err
}

func holdRestored(tx *store.Transaction, w *store.Writer, open []int64) (held []task.Task, err error) {
	for _, seq := range open {
		state, err := store.TaskLoader(seq, false, false)(tx)
		if err != nil {
			return nil, err
		}
		row := state.Task(seq).Task
		answer, err := w.DecideIn(tx, state, &core.HoldRestored{Task: seq, Seen: core.See(row)}, time.Now())
		if err != nil || answer != nil {
			return nil, fmt.Errorf("task %s: %w", row.ID, cmp.Or(err, answer))
		}
		held = append(held, state.Task(seq).Task)
	}
	return held, nil
}
