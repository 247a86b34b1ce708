package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// enter counts what a task waits for that has no place in the queue: a pause between attempts, which ends by
// itself, or budget, which may not. leave ends that. Both follow the moves of the ledger, or the start of the
// daemon.
func (st *steps) enter(row task.Task) {
	switch {
	case row.WaitsForBudget():
		st.Queue.AddBlocked()
	case row.InBackoff():
		st.Queue.AddBusy()
	}
}

// leave ends what enter counted, when the next step of the task is known.
func (st *steps) leave(row task.Task) {
	switch {
	case row.WaitsForBudget():
		st.Queue.RemoveBlocked()
	case row.InBackoff():
		st.Queue.Done()
	}
}

// onHeld begins the pause of a held task, and has it looked at if what it waits for may have happened.
func (st *steps) onHeld(ctx context.Context, row task.Task) {
	if row.InBackoff() {
		st.Timers.StartBackoff(row.Seq, min(time.Until(row.Until), store.LongestPause)) // the limit covers a clock that was set meanwhile
	}
	if core.Unbound(row) {
		st.router.wake()
	}
	if st.executor.NeedlesslyPaused(row) {
		st.Timers.Now(row.Seq) // the pause ended while the task was judged
	}
	if st.runnerHasRoom(row, true) {
		st.Timers.Now(row.Seq) // it got room before the task was held
	}
	if slices.Contains(row.Reasons, task.After) {
		st.checkAfter(ctx, row)
	}
	if slices.Contains(row.Reasons, task.ResultInvalid) {
		st.Timers.After(row.Seq, store.SettlePause) // the file may be gone by then
	}
}

// checkAfter has a task judged at once if it does not have to wait for the end of another one.
func (st *steps) checkAfter(ctx context.Context, row task.Task) {
	over, err := st.Reader.AfterIsOver(ctx, row)
	switch {
	case err != nil:
		st.Timers.After(row.Seq, store.RetryPause)
	case over:
		st.Timers.Now(row.Seq)
	}
}

// advance does what the state of a task requires, also of one that was not moved just now, such as
// a task found at a start. A task enters the queue only here.
func (st *steps) advance(ctx context.Context, row task.Task) {
	if row.Replaces && row.State != task.Received {
		own := "earlier result of " + string(row.ID) + " cannot be moved to the history"
		if err := st.Publisher.Displace(ctx, row); err != nil {
			st.FaultLog.Report(own, row, err)
			st.Timers.After(row.Seq, store.RetryPause)
			return
		}
		st.FaultLog.Clear(own)
	}
	if row.State == task.Running {
		return // its run continues
	}
	defer st.Messenger.NotifyLaterOf(row)
	switch row.State {
	case task.Queued:
		st.inbox.enqueue(row)
	case task.Held:
		st.onHeld(ctx, row)
	case task.Review:
		if st.Box.HasResult(row.ID) {
			st.Timers.Now(row.Seq) // a file placed during the run
		}
	case task.Done:
		if !row.Put || !row.Delivered {
			st.Publisher.Settle(ctx, row)
		}
		st.admitNext(ctx, row)
		st.completer.TaskEnded(ctx, row)
	}
}

// judgeDue judges a task again at once when its hold is over, for a caller that reads the task
// next.
func (st *steps) judgeDue(ctx context.Context, row task.Task) {
	if row.State == task.Held && !core.Unread(row) && !row.Until.IsZero() && !row.Until.After(time.Now()) {
		st.reevaluate(ctx, row.Seq)
	}
}

// ReevaluateAll evaluates all held tasks again after a change of the rules or the agents, and
// lets the workers check whether agents have free slots.
func (st *steps) ReevaluateAll() {
	for row, err := range st.Reader.Unfinished(context.Background()) {
		if err != nil {
			st.FaultLog.Report(store.Judging, row, err)
			return
		}
		if isHeld(row) {
			st.reevaluateSoon(row)
		}
	}
	st.Queue.Wake()
	st.router.wakeAll()
}

// reevaluateSoon evaluates a held task again, unless it is in backoff.
func (st *steps) reevaluateSoon(row task.Task) {
	if !row.InBackoff() {
		st.Timers.Now(row.Seq)
	}
}

// reevaluate evaluates a task that is due.
func (st *steps) reevaluate(ctx context.Context, seq int64) {
	row, err := st.Ledger.Task(ctx, seq)
	if err == nil && row.State == task.Done {
		st.wakeAfter(ctx, row) // that may have failed
	}
	if err == nil && (row.State == task.Done || row.Attempt > 0) {
		st.retryLater(row, st.executor.WakeAfterRun(ctx, row)) // likewise
	}
	if err == nil && row.State == task.Done && row.Put && row.Delivered && !row.Replaces {
		st.admitNext(ctx, row)
		st.completer.TaskEnded(ctx, row)
		return // its own request may be no longer kept
	}
	row, t, findings, err := st.Reader.Load(ctx, seq)
	if err == nil {
		err = st.reevaluateTask(ctx, row, t, findings)
	}
	if err != nil && ctx.Err() == nil {
		st.FaultLog.Report(store.Judging, row, err)
		st.Timers.After(seq, store.RetryPause)
	}
	if err == nil {
		st.FaultLog.Clear(store.Judging)
	}
}

func (st *steps) reevaluateTask(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) error {
	if row.Replaces && row.State != task.Received {
		st.advance(ctx, row)
		return nil
	}
	switch row.State {
	case task.Done:
		if !row.Put || !row.Delivered {
			st.Publisher.Settle(ctx, row)
		}
		st.completer.TaskEnded(ctx, row)
		return nil
	case task.Held:
		if settled, err := st.reevaluateHeld(ctx, row, t, findings); settled || err != nil {
			return err
		}
	case task.Queued:
	case task.Received:
		return st.tryAdmitNext(ctx, row.ID)
	case task.Waiting:
		return st.inbox.reevaluateWaiting(ctx, row)
	case task.Review:
		return st.overseer.ReevaluateReview(ctx, row)
	case task.Running:
		if st.Runs.NeedsApproval(row.Seq) {
			return st.Publisher.Refuse(ctx, row)
		}
		return nil
	default:
		return nil
	}
	verdict := core.Held(st.Reader.Judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if row.State == task.Queued {
		cleared, err := st.Reader.Cleared(ctx, row, verdict)
		if err != nil {
			return err
		}
		if cleared {
			return nil // it is in the queue already
		}
	}
	return st.Reader.Apply(ctx, row, t, verdict)
}

// reevaluateHeld does what a held task needs before it is judged again. It reports whether no
// work is left for the task now.
func (st *steps) reevaluateHeld(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) (bool, error) {
	if core.Unread(row) {
		return true, st.executor.ReevaluateUnread(ctx, row)
	}
	if conversation.Suspended(row) {
		return true, st.completer.ReevaluateSuspended(ctx, row, t, findings)
	}
	if answered, err := st.placed.HandleFile(ctx, row); answered || err != nil {
		return true, err
	}
	if conversation.Follows(row) {
		return true, st.completer.ReevaluateFollower(ctx, row, t)
	}
	if core.Unbound(row) && len(core.Lasting(row.Reasons)) == 0 { // under an operator's hold only its deadline counts
		st.router.wakeDue()
		return true, nil
	}
	return row.InBackoff() && st.Timers.InBackoff(row.Seq), nil // it was only for its result file
}
