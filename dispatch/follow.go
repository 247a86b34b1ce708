package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// The steps are what follows from each change of a task. The writer calls them when the
// change is durable, the timers when a task is due.
type steps struct {
	*outbox.Base
	completer  *exchange.Completer
	overseer   *exchange.Overseer
	placed     *exchange.PlacedResults
	executor   *executor.Executor
	inbox      *inboxes
	dependents *outbox.Dependents
	unshown    *schedule.DeliveryQueue // tasks that were refused and whose results are still to be put
}

// onCommitted takes the next step of all tasks that a transaction moved. It is the one
// place where one step leads to the next.
func (st *steps) onCommitted(ctx context.Context, follow store.Consequences) {
	ctx = context.WithoutCancel(ctx)
	for _, parent := range follow.Parents {
		st.dependents.Add(parent)
		st.checkAbove(ctx, task.Task{Seq: parent})
	}
	for _, m := range follow.Moves {
		if changesOnlyLease(m) {
			st.admitNext(ctx, m.After)
			continue
		}
		if m.Before.Seq != 0 && (remembered(m.Before) || remembered(m.After)) {
			defer st.removeHeld(m.Before)() // last: the engine isn't idle in between
		}
		st.onMoved(ctx, m)
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
	if m.Before.Seq == 0 && row.State != task.Done {
		st.Info(row).Int("revision", row.Revision).Str("state", string(row.State)).Msg("task accepted")
	}
	if m.Ended {
		st.settled(ctx, m.Before)
	}
	switch {
	case m.Before.Seq == 0 && row.State == task.Done:
		st.showLater(row)
	case row.State == task.Done:
		st.advance(ctx, row)
	case row.State == task.Queued:
		st.admitNext(ctx, row) // which need not wait for what has to start again
		if !m.Pauses {
			st.advance(ctx, row)
		}
	default:
		st.advance(ctx, row)
		st.checkWait(ctx, row)
		st.admitNext(ctx, row) // last: it may end this one
	}
}

// changesOnlyLease reports whether a task waits for its agent as it did before.
func changesOnlyLease(m store.Move) bool {
	return m.Before.State == task.Waiting && m.After.State == task.Waiting && !m.Ended
}

// checkWait looks at a task that has begun to wait: what it waits for may be over already.
func (st *steps) checkWait(ctx context.Context, row task.Task) {
	if row.State == task.Waiting {
		st.inbox.checkWaiting(ctx, row)
	}
	if core.WaitsForWords(row) || row.State == task.Review {
		st.completer.TryJoin(ctx, row.Seq)
	}
}

// remembered reports whether a look finds the task by what is remembered of it.
func remembered(row task.Task) bool {
	return row.State == task.Held || row.State == task.Waiting || row.State == task.Review
}

// checkAbove cancels the dependents of a task that has ended: before it was known to
// have any, or because a newer request took its place.
func (st *steps) checkAbove(ctx context.Context, row task.Task) {
	now, err := st.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil && ctx.Err() == nil:
		st.FaultLog.Report(store.Judging, row, err)
		st.Timers.After(row.Seq, store.RetryPause)
	case err == nil && now.State == task.Done:
		st.completer.TaskEnded(ctx, now)
	}
}

// settled wakes the tasks that wait for what a run of a task gives back, which is over.
func (st *steps) settled(ctx context.Context, row task.Task) {
	if st.Agents.Forget != nil {
		st.Agents.Forget(st.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	if !st.executor.Waits.Settle() {
		return
	}
	keys, err := st.executor.LimitsOf(ctx, row)
	if err != nil {
		keys = st.executor.Waits.Limits() // a task that waits for another limit waits again
		if ctx.Err() == nil {
			st.FaultLog.Report(store.Judging, row, err)
		}
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			st.executor.Waits.WakeNext(ctx, key)
		}
	}
}

// reevaluated is for a task that was looked at, perhaps because it was woken. The next step
// of one that is queued is known when it is taken from the queue.
func (st *steps) reevaluated(ctx context.Context, seq int64) {
	if !st.executor.Waits.IsWoken(seq) {
		return
	}
	if row, err := st.Ledger.Task(ctx, seq); err == nil && row.State != task.Queued {
		st.executor.Waits.Proceeded(ctx, seq)
	}
}

// adoptPlaced looks whether a result file was placed for a task that waits, or for
// one that runs and whose answer needs an approval. Every look does that, so for
// all of them at once: one by one, beside 40,000 held tasks, it was most of what
// taking in 4,096 lines took.
func (st *steps) adoptPlaced(ctx context.Context) {
	seqs, ids := st.Held.Names()
	for _, row := range st.Runs.NeedingApproval() {
		seqs, ids = append(seqs, row.Seq), append(ids, row.ID)
	}
	for i, there := range st.Box.HaveResults(ids) {
		if there {
			st.reevaluate(ctx, seqs[i])
		}
	}
}

// admitNext lets the latest revision of a task in, if it was waiting for an
// earlier one to end.
func (st *steps) admitNext(ctx context.Context, row task.Task) {
	if row.Latest {
		return // and one that comes later doesn't wait for it
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
		return nil // its request may not be kept any more
	}
	return st.admit(ctx, revisions[latest].Seq)
}

// admit lets a revision in that waits for earlier ones, if none of them is in hand any
// more. Two ends of these may see to it: the later of them finds it queued, or running.
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
