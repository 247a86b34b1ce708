package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// OnCommitted takes the next step of all tasks that a transaction moved. It is the one
// place where one step leads to the next.
func (d *Dispatcher) onCommitted(ctx context.Context, follow store.Consequences) {
	ctx = context.WithoutCancel(ctx)
	for _, parent := range follow.Parents {
		d.kin.Add(parent)
		d.checkAbove(ctx, task.Task{Seq: parent})
	}
	for _, m := range follow.Moves {
		defer d.leave(m.Before)() // last: the engine isn't idle in between
		d.onMoved(ctx, m)
	}
	for _, c := range follow.Cancels {
		d.Canceller.CancelFor(ctx, task.Task{Seq: c.Task}, c.From, c.Message)
	}
	if follow.Deliver {
		d.Messenger.NotifyLater(0)
	}
}

// onMoved takes the next step of one task.
func (d *Dispatcher) onMoved(ctx context.Context, m store.Move) {
	row := m.After
	if m.Before.Seq == 0 && row.State != task.Done {
		d.Info(row).Int("revision", row.Revision).Str("state", string(row.State)).Msg("task accepted")
	}
	if m.Ended {
		d.settled(ctx, m.Before)
	}
	if row.State != task.Done { // or it comes after the result
		d.admitNext(ctx, row)
	}
	if m.Before.Seq == 0 && row.State == task.Done {
		d.showLater(row)
	} else {
		d.advance(ctx, row)
	}
	if row.State == task.Waiting {
		d.inbox.lookAfter(ctx, row)
	}
	if core.WaitsForWords(row) || row.State == task.Review {
		d.completion.JoinNow(ctx, row.Seq) // what it waits for may be over already
	}
}

// checkAbove stops what is below a task if that has ended: before it was known to
// have any, or because a newer request took its place.
func (d *Dispatcher) checkAbove(ctx context.Context, row task.Task) {
	now, err := d.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil && ctx.Err() == nil:
		d.FaultLog.Report(store.Judging, row, err)
		d.Timers.After(row.Seq, store.RetryPause)
	case err == nil && now.State == task.Done:
		d.completion.EndedBelow(ctx, now)
	}
}

// settled wakes the tasks that wait for what a run of a task gives back, which is over.
func (d *Dispatcher) settled(ctx context.Context, row task.Task) {
	if d.Agents.Forget != nil {
		d.Agents.Forget(d.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	if !d.executor.Waits.Settle() {
		return
	}
	keys, err := d.executor.LimitsOf(ctx, row)
	if err != nil {
		keys = d.executor.Waits.Limits() // a task that waits for another limit waits again
		if ctx.Err() == nil {
			d.FaultLog.Report(store.Judging, row, err)
		}
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			d.executor.Waits.WakeNext(ctx, key)
		}
	}
}

// lookedAt is for a task that was looked at, perhaps because it was woken. The next step
// of one that is queued is known when its turn comes.
func (d *Dispatcher) lookedAt(ctx context.Context, seq int64) {
	if !d.executor.Waits.IsWoken(seq) {
		return
	}
	if row, err := d.Ledger.Task(ctx, seq); err == nil && row.State != task.Queued {
		d.executor.Waits.Proceeded(ctx, seq)
	}
}

// adoptHeld looks whether a result file was placed for a task that waits, or for
// one that runs and whose answer needs an approval. Every look does that, so for
// all of them at once: one by one, beside 40,000 held tasks, it was most of what
// taking in 4,096 lines took.
func (d *Dispatcher) adoptHeld(ctx context.Context) {
	seqs, ids := d.Held.Names()
	for _, row := range d.Runs.Guarded() {
		seqs, ids = append(seqs, row.Seq), append(ids, row.ID)
	}
	for i, there := range d.Box.HaveResults(ids) {
		if there {
			d.revisit(ctx, seqs[i])
		}
	}
}

// admitNext lets the latest revision of a task in, if it was waiting for an
// earlier one to end.
func (d *Dispatcher) admitNext(ctx context.Context, row task.Task) {
	if row.Latest {
		return // and one that comes later doesn't wait for it
	}
	if err := d.tryAdmitNext(ctx, row.ID); err != nil {
		d.FaultLog.Report(store.Judging, row, err)
		d.Timers.After(row.Seq, store.RetryPause)
	}
}

func (d *Dispatcher) tryAdmitNext(ctx context.Context, id envelope.ID) error {
	revisions, err := d.Ledger.Revisions(ctx, id)
	if err != nil || len(revisions) == 0 {
		return err
	}
	latest := len(revisions) - 1
	if revisions[latest].State != task.Received {
		return nil // its request may not be kept any more
	}
	return d.letIn(ctx, revisions[latest].Seq)
}

// letIn lets a revision in that waits for earlier ones, if none of them is in hand any
// more. Two ends of these may see to it: the later of them finds it queued, or running.
func (d *Dispatcher) letIn(ctx context.Context, seq int64) error {
	row, t, findings, err := d.Reader.Load(ctx, seq)
	if err != nil || row.State != task.Received {
		return err
	}
	verdict := core.Held(d.Reader.Judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if verdict, err = d.Reader.JudgeLineage(ctx, row, verdict); err != nil {
		return err
	}
	load := func(tx *store.Transaction) (*core.State, error) { return store.LoadRevisions(tx, row.ID) }
	_, err = d.Writer.DecideIfCurrent(ctx, load, &core.Judge{Task: seq, Seen: core.See(row), Request: t, Verdict: verdict})
	return err
}
