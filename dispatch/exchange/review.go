package exchange

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// ReevaluateReview ends a review whose time is over. First it moves away a result file that
// another program placed: it must not count as the answer, or an agent could avoid the review
// (AINL-85), and the answer is not published before its approval.
func (ov *Overseer) ReevaluateReview(ctx context.Context, row task.Task) error {
	if ov.Box.HasResult(row.ID) {
		if err := ov.Publisher.Guard(ctx, row); err != nil {
			return err
		}
	}
	if overseen, err := ov.reevaluateOversight(ctx, row); overseen || err != nil {
		return err
	}
	if !core.IsPast(row.Until, time.Now()) {
		return nil
	}
	q, err := ov.Reader.About(ctx, row)
	if err != nil {
		return err
	}
	_, err = ov.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, q.Began, true), &core.ReviewDue{Task: row.Seq, Request: q.Task, Result: q.Result})
	return err
}
