package api

import (
	"context"

	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// addRuns gives tasks the run of their tree, where that isn't the id of the task. The trees of
// AINL requests have the id of their first task.
func (b *Records) addRuns(ctx context.Context, tasks []client.Task) error {
	known := map[int64]string{} // by the Seq of a parent
	for i, t := range tasks {
		if t.Depth == 0 && t.Dialect == "" {
			continue
		}
		row, err := b.Ledger.Task(ctx, t.Seq)
		if err != nil {
			return err
		}
		run, err := b.runOf(ctx, row, known)
		if err != nil {
			return err
		}
		if run != string(t.ID) {
			tasks[i].RunID = run
		}
	}
	return nil
}

func (b *Records) runOf(ctx context.Context, row task.Task, known map[int64]string) (run string, err error) {
	if row.Parent == 0 {
		return b.Ledger.RunOf(ctx, row)
	}
	if run, ok := known[row.Parent]; ok {
		return run, nil
	}
	if run, err = b.Ledger.RunOf(ctx, row); err == nil {
		known[row.Parent] = run
	}
	return run, err
}
