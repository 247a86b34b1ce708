package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// reconsiderReview ends a review of which nobody has said anything in time. A
// result file that somebody placed is moved away first: it is not taken for the
// answer, or an agent could do without the review (AINL-85), and the answer itself
// is not shown before somebody agreed.
func (ov *overseer) reconsiderReview(ctx context.Context, row task.Task) error {
	if ov.Box.HasResult(row.ID) {
		if err := ov.publisher.guard(ctx, row); err != nil {
			return err
		}
	}
	if overseen, err := ov.reconsiderOversight(ctx, row); overseen || err != nil {
		return err
	}
	now := time.Now()
	if !past(row.Until, now) {
		ov.timers.Set(row.Seq, row.Until)
		return nil
	}
	q, err := ov.reader.about(ctx, row)
	if err != nil {
		return err
	}
	_, err = ov.writer.decideIfCurrent(ctx, loads(row.Seq, q.began, true), &core.ReviewDue{Task: row.Seq, Request: q.task, Result: q.result})
	return err
}
