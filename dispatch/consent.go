package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// wantsApproval reports whether a person has to agree before a task starts.
func wantsApproval(reasons []task.Reason) bool { return slices.Contains(reasons, task.Approval) }

// cleared reports whether a task may start: it is admitted, and nothing holds it
// but an approval that was given for exactly this.
func (rd *reader) cleared(ctx context.Context, row task.Task, v task.Verdict) (bool, error) {
	if !v.Admit || !wantsApproval(v.Hold) {
		return v.Admit && len(v.Hold) == 0, nil
	}
	last, asked, err := rd.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPre)
	if err != nil || !asked || len(v.Hold) > 1 {
		return false, err
	}
	began := false
	if row.Attempt > 0 {
		began, err = rd.ran(ctx, row)
	}
	return core.Covers(&last, v, began, time.Now()), err
}

// stageOf is what an approval of a task that waits for one would be of.
func stageOf(row task.Task) envelope.Approval {
	if row.State == task.Review {
		return envelope.ApprovalPost
	}
	return envelope.ApprovalPre
}
