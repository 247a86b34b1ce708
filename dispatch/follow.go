package dispatch

import (
	"context"
	"math"
	"slices"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// steps takes the steps that follow from a change of a task. The writer calls it when the
// change is durable, the timers when a task is due.
type steps struct {
	*outbox.Base
	completer   *exchange.Completer
	overseer    *exchange.Overseer
	placed      *exchange.PlacedResults
	executor    *executor.Executor
	inbox       *inboxes
	router      *router
	unpublished *schedule.DutyQueue // refused tasks whose results are not published yet
}

// onCommitted takes the next step of all tasks that a transaction moved. One step leads to the
// next only here.
func (st *steps) onCommitted(ctx context.Context, follow store.Consequences) {
	ctx = context.WithoutCancel(ctx)
	for _, parent := range follow.Parents {
		st.checkDependents(ctx, task.Task{Seq: parent})
	}
	for _, m := range follow.Moves {
		lease := changesOnlyLease(m)
		if !lease {
			st.enter(m.After)
			defer st.leave(m.Before) // last: the engine must not look idle in between
			st.Timers.EndBackoff(m.Before.Seq)
		}
		st.Timers.Written(m.After.Seq, m.After.Due)
		if lease {
			st.admitNext(ctx, m.After)
		} else {
			st.onMoved(ctx, m)
		}
	}
	for _, c := range follow.Cancels {
		st.Canceller.CancelFor(ctx, task.Task{Seq: c.Task}, c.From, c.Message)
	}
	if follow.Deliver {
		st.Messenger.NotifyLater(0)
	}
}

// onMoved takes the next step of one task.
func (st *steps) onMoved(ctx context.Context, m store.Move) {
	row := m.After
	st.runnerHasRoom(m.Before, false) // before a runner may refuse it again
	if m.Before.Seq == 0 && row.State != task.Done {
		st.Info(row).Int("revision", row.Revision).Str("state", string(row.State)).Msg("task accepted")
	}
	if m.Ended {
		st.RecentRuns.Performance.Ended(m.Before.Agent, m.Run, row.Kind)
		st.settled(ctx, m.Before)
	}
	if m.Ended || m.Before.State == task.Queued && row.State != task.Running || slices.Contains(m.Before.Reasons, task.AuthRequired) {
		st.router.wake() // an agent may be free
	}
	if row.State == task.Done {
		st.wakeAfter(ctx, row)
	}
	if stopsWaitingForBudget(m) {
		st.retryLater(row, st.executor.WakeForBudget(ctx))
	}
	switch {
	case m.Before.Seq == 0 && row.State == task.Done:
		st.publishLater(row)
	case row.State == task.Done:
		st.advance(ctx, row)
	case row.State == task.Queued:
		st.admitNext(ctx, row) // a later revision does not wait for one that has to start again
		if !m.Pauses {
			st.advance(ctx, row)
		}
	default:
		st.advance(ctx, row)
		st.checkWait(ctx, row)
		st.admitNext(ctx, row) // last: the next revision may end this one
	}
}

// stopsWaitingForBudget reports whether a task that may have waited for budget goes elsewhere than to
// a run. The next one may not have to wait then.
func stopsWaitingForBudget(m store.Move) bool {
	if m.Before.WaitsForBudget() {
		return m.After.State != task.Queued
	}
	return m.Before.State == task.Queued && (m.After.State == task.Held || m.After.State == task.Done) && !m.After.WaitsForBudget()
}

// wakeAfter judges the tasks that wait for the end of a task.
func (st *steps) wakeAfter(ctx context.Context, ended task.Task) {
	waiters, err := st.Ledger.Waiting(ctx, task.AfterKey(ended.ID), math.MaxInt)
	st.retryLater(ended, err)
	for _, w := range waiters {
		st.Timers.Now(w.Task)
	}
}

// changesOnlyLease reports whether a task waits for its agent before and after the move.
func changesOnlyLease(m store.Move) bool {
	return m.Before.State == task.Waiting && m.After.State == task.Waiting && !m.Ended
}

// checkWait checks a task that has begun to wait: the event that it waits for may have happened
// already.
func (st *steps) checkWait(ctx context.Context, row task.Task) {
	if row.State == task.Waiting {
		st.inbox.checkWaiting(ctx, row)
	}
	if conversation.Suspended(row) || conversation.Follows(row) || row.State == task.Review {
		st.completer.TryJoin(ctx, row.Seq)
	}
}

// isHeld reports whether a task is held, waits for its agent, or is in review. Another program may
// place its result then.
func isHeld(row task.Task) bool {
	return row.State == task.Held || row.State == task.Waiting || row.State == task.Review
}

// checkDependents cancels the dependents of a task that has ended. The task may have ended before
// its dependents were known, or because a newer request replaced it.
func (st *steps) checkDependents(ctx context.Context, row task.Task) {
	now, err := st.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil && ctx.Err() == nil:
		st.FaultLog.Report(store.Judging, row, err)
		st.Timers.After(row.Seq, store.RetryPause)
	case err == nil && now.State == task.Done:
		st.completer.TaskEnded(ctx, now)
	}
}

// settled wakes the tasks that wait for the budget that an ended run releases.
func (st *steps) settled(ctx context.Context, row task.Task) {
	if st.Agents.Forget != nil {
		st.Agents.Forget(st.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	st.retryLater(row, st.executor.WakeAfterRun(ctx, row))
}

// retryLater has a step that failed repeated with the next evaluation of a task.
func (st *steps) retryLater(row task.Task, err error) {
	if err != nil {
		st.FaultLog.Report(store.Judging, row, err)
		st.Timers.After(row.Seq, store.RetryPause)
	}
}

// adoptPlaced checks whether a result file was placed for a waiting task, or for a running task
// whose answer needs approval. It checks all tasks in one call, because every look does it:
// with 40,000 held tasks, checking them one by one took most of the time of reading 4,096
// lines.
func (st *steps) adoptPlaced(ctx context.Context) {
	seqs, ids, err := st.Ledger.HeldNames(ctx)
	if err != nil && ctx.Err() == nil {
		st.FaultLog.Report(store.Judging, task.Task{}, err)
	}
	for _, row := range st.Runs.NeedingApproval() {
		seqs, ids = append(seqs, row.Seq), append(ids, row.ID)
	}
	for i, exists := range st.Box.HaveResults(ids) {
		if exists {
			st.reevaluate(ctx, seqs[i])
		}
	}
}

// admitNext admits the latest revision of a task, if that waited for an earlier revision to
// end.
func (st *steps) admitNext(ctx context.Context, row task.Task) {
	if row.Latest {
		return // a revision that arrives later does not wait for it
	}
	if err := st.tryAdmitNext(ctx, row.ID); err != nil {
		st.FaultLog.Report(store.Judging, row, err)
		st.Timers.After(row.Seq, store.RetryPause)
	}
}

func (st *steps) tryAdmitNext(ctx context.Context, id envelope.ID) error {
	revisions, err := st.Ledger.Revisions(ctx, id)
	if err != nil || len(revisions) == 0 {
		return err
	}
	latest := len(revisions) - 1
	if revisions[latest].State != task.Received {
		return nil // its request may be no longer kept
	}
	return st.admit(ctx, revisions[latest].Seq)
}

// admit admits a revision that waits for earlier ones, if none of these is in progress. The
// ends of two earlier revisions may both call it: the second call finds the revision queued or
// running.
func (st *steps) admit(ctx context.Context, seq int64) error {
	row, t, findings, err := st.Reader.Load(ctx, seq)
	if err != nil || row.State != task.Received {
		return err
	}
	verdict := core.Held(st.Reader.Judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if verdict, err = st.Reader.JudgeLineage(ctx, row, verdict); err != nil {
		return err
	}
	load := func(tx *store.Transaction) (*core.State, error) { return store.LoadRevisions(tx, row.ID) }
	_, err = st.Writer.DecideIfCurrent(ctx, load, &core.Judge{Task: seq, Seen: core.See(row), Request: t, Verdict: verdict})
	return err
}
