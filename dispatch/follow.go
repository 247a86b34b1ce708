package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// onCommitted takes the next step of all tasks that a transaction moved. It is the one
// place where one step leads to the next.
func (d *Dispatcher) onCommitted(ctx context.Context, follow consequences) {
	ctx = context.WithoutCancel(ctx)
	for _, parent := range follow.parents {
		d.kin.add(parent)
		d.checkAbove(ctx, task.Task{Seq: parent})
	}
	for _, m := range follow.moves {
		defer d.leave(m.before)() // last: the engine isn't idle in between
		d.onMoved(ctx, m)
	}
	for _, c := range follow.cancels {
		d.canceller.cancelFor(ctx, task.Task{Seq: c.task}, c.from, c.message)
	}
	if follow.deliver {
		d.messenger.notifyLater(0)
	}
}

// onMoved takes the next step of one task.
func (d *Dispatcher) onMoved(ctx context.Context, m move) {
	row := m.after
	if m.before.Seq == 0 && row.State != task.Done {
		d.info(row).Int("revision", row.Revision).Str("state", string(row.State)).Msg("task accepted")
	}
	if m.ended {
		d.settled(ctx, m.before)
	}
	if row.State != task.Done { // or it comes after the result
		d.admitNext(ctx, row)
	}
	if m.before.Seq == 0 && row.State == task.Done {
		d.showLater(row)
	} else {
		d.advance(ctx, row)
	}
	if row.State == task.Waiting {
		d.inbox.lookAfter(ctx, row)
	}
	if core.WaitsForWords(row) || row.State == task.Review {
		d.completion.joinNow(ctx, row.Seq) // what it waits for may be over already
	}
}

// checkAbove stops what is below a task if that has ended: before it was known to
// have any, or because a newer request took its place.
func (d *Dispatcher) checkAbove(ctx context.Context, row task.Task) {
	now, err := d.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil && ctx.Err() == nil:
		d.faults.report(judging, row, err)
		d.timers.After(row.Seq, retryPause)
	case err == nil && now.State == task.Done:
		d.completion.endedBelow(ctx, now)
	}
}

// settled wakes the tasks that wait for what a run of a task gives back, which is over.
func (d *Dispatcher) settled(ctx context.Context, row task.Task) {
	if d.agents.Forget != nil {
		d.agents.Forget(d.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	if !d.executor.waits.settle() {
		return
	}
	keys, err := d.executor.limitsOf(ctx, row)
	if err != nil {
		keys = d.executor.waits.limits() // a task that waits for another limit waits again
		if ctx.Err() == nil {
			d.faults.report(judging, row, err)
		}
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			d.executor.waits.wakeNext(ctx, key)
		}
	}
}

// lookedAt is for a task that was looked at, perhaps because it was woken. The next step
// of one that is queued is known when its turn comes.
func (d *Dispatcher) lookedAt(ctx context.Context, seq int64) {
	if !d.executor.waits.isWoken(seq) {
		return
	}
	if row, err := d.Ledger.Task(ctx, seq); err == nil && row.State != task.Queued {
		d.executor.waits.proceeded(ctx, seq)
	}
}

// adoptHeld looks whether a result file was placed for a task that waits, or for
// one that runs and whose answer needs an approval. Every look does that, so for
// all of them at once: one by one, beside 40,000 held tasks, it was most of what
// taking in 4,096 lines took.
func (d *Dispatcher) adoptHeld(ctx context.Context) {
	seqs, ids := d.held.names()
	for _, row := range d.runs.guarded() {
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
		d.faults.report(judging, row, err)
		d.timers.After(row.Seq, retryPause)
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
	row, t, findings, err := d.reader.load(ctx, seq)
	if err != nil || row.State != task.Received {
		return err
	}
	verdict := core.Held(d.reader.judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if verdict, err = d.reader.judgeLineage(ctx, row, verdict); err != nil {
		return err
	}
	load := func(tx *transaction) (*core.State, error) { return loadRevisions(tx, row.ID) }
	_, err = d.writer.decideIfCurrent(ctx, load, &core.Judge{Task: seq, Seen: core.See(row), Request: t, Verdict: verdict})
	return err
}
