package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// leave forgets that a task was held, if it was. What it returns ends a pause
// between attempts, and is called when the task's next step is known.
func (d *Dispatcher) leave(row task.Task) (ended func()) {
	was, held := d.Held.Remove(row.Seq)
	if !held || !was.Resting {
		return func() {}
	}
	if !was.Budget {
		d.Timers.Rested(row.Seq)
		return d.Queue.Done
	}
	d.Queue.RemoveBlocked()
	d.executor.Waits.Leave(row.Seq)
	return d.Queue.Done
}

// keepHeld remembers a task that is held, and when to look at it again.
func (d *Dispatcher) keepHeld(ctx context.Context, row task.Task) {
	d.Held.Add(row)
	if store.Resting(row) && !row.WaitsForBudget() {
		d.Timers.Rest(row.Seq, min(time.Until(row.Until), store.LongestPause)) // of a clock that was set meanwhile we know no better
	} else {
		d.Timers.Set(row.Seq, row.Until)
	}
	if d.executor.NeedlesslyPaused(row) {
		d.Timers.After(row.Seq, 0) // it was judged while the pause ended
	}
	if slices.Contains(row.Reasons, task.ResultInvalid) {
		d.Timers.After(row.Seq, store.SettlePause) // the file may have gone
	}
	if row.WaitsForBudget() {
		d.Queue.AddBlocked()
		d.Timers.Set(row.Seq, executor.Midnight(time.Now())) // the budgets of the day are new ones then
	}
	if store.Resting(row) {
		d.Queue.AddBusy()
		d.mayBeOver(ctx, row)
	}
}

// mayBeOver is for a pause that somebody may have ended before it was known to begin.
func (d *Dispatcher) mayBeOver(ctx context.Context, row task.Task) {
	now, err := d.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil || store.Resting(now):
	case now.State == task.Held:
		d.proceed(ctx, now)
	default:
		d.leave(row)()
	}
}

// proceed is advance for a task that was not moved just now, such as one that is found at
// start-up.
func (d *Dispatcher) proceed(ctx context.Context, row task.Task) {
	defer d.leave(row)() // last: the engine isn't idle in between
	d.advance(ctx, row)
}

// advance does what a task's state asks for. It is the one place where a task enters the
// queue.
func (d *Dispatcher) advance(ctx context.Context, row task.Task) {
	if row.Replaces && row.State != task.Received {
		own := "earlier result of " + string(row.ID) + " cannot be moved to the history"
		if err := d.Publisher.Displace(ctx, row); err != nil {
			d.FaultLog.Report(own, row, err)
			d.Timers.After(row.Seq, store.RetryPause)
			return
		}
		d.FaultLog.Clear(own)
	}
	defer d.Messenger.NotifyLaterOf(row)
	switch row.State {
	case task.Queued:
		d.Timers.Set(row.Seq, row.Deadline)
		d.inbox.queueUp(row)
	case task.Held:
		d.keepHeld(ctx, row)
	case task.Waiting:
		d.Held.Add(row)
		d.Timers.Set(row.Seq, core.Earliest(row.Deadline, row.Until))
	case task.Review:
		d.Held.Add(row)
		d.Timers.Set(row.Seq, row.Until)
		if d.Box.HasResult(row.ID) {
			d.Timers.After(row.Seq, 0) // placed while it ran
		}
	case task.Done:
		d.Publisher.Settle(ctx, row)
		d.admitNext(ctx, row)
		d.completion.EndedBelow(ctx, row)
	}
}

// judgeDue judges a task again at once whose hold is over, for a caller who looks at the
// task next.
func (d *Dispatcher) judgeDue(ctx context.Context, row task.Task) {
	if row.State == task.Held && !core.Unread(row) && !row.Until.IsZero() && !row.Until.After(time.Now()) {
		d.revisit(ctx, row.Seq)
	}
}

// Rejudge looks at all held tasks again, after the rules or the agents have
// changed, and lets workers see whether agents have more room.
func (d *Dispatcher) Rejudge() {
	now := time.Now()
	for _, task := range d.Held.All() {
		if !task.Resting || task.Budget {
			d.Timers.Set(task.Seq, now)
		}
	}
	d.Queue.Wake()
}

// rejudge looks at a held task again, unless it only rests.
func (d *Dispatcher) rejudge(row task.Task) {
	if !store.Resting(row) || row.WaitsForBudget() {
		d.Timers.After(row.Seq, 0)
	}
}

// revisit looks at a task whose alarm rang.
func (d *Dispatcher) revisit(ctx context.Context, seq int64) {
	row, err := d.Ledger.Task(ctx, seq)
	if err == nil && row.State == task.Done && row.Put && row.Delivered && !row.Replaces {
		d.admitNext(ctx, row)
		d.completion.EndedBelow(ctx, row)
		return // its own request may not be kept any more
	}
	row, t, findings, err := d.Reader.Load(ctx, seq)
	if err == nil {
		err = d.reconsider(ctx, row, t, findings)
	}
	if err != nil && ctx.Err() == nil {
		d.FaultLog.Report(store.Judging, row, err)
		d.Timers.After(seq, store.RetryPause)
	}
	if err == nil {
		d.FaultLog.Clear(store.Judging)
	}
}

func (d *Dispatcher) reconsider(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) error {
	if row.Replaces && row.State != task.Received {
		d.proceed(ctx, row)
		return nil
	}
	switch row.State {
	case task.Done:
		if !row.Put || !row.Delivered {
			d.Publisher.Settle(ctx, row)
		}
		d.completion.EndedBelow(ctx, row)
		return nil
	case task.Held:
		if settled, err := d.reconsiderHeld(ctx, row, t, findings); settled || err != nil {
			return err
		}
	case task.Queued:
	case task.Received:
		return d.tryAdmitNext(ctx, row.ID)
	case task.Waiting:
		return d.inbox.tend(ctx, row)
	case task.Review:
		return d.overseer.ReconsiderReview(ctx, row)
	case task.Running:
		if d.Runs.IsGuarded(row.Seq) {
			return d.Publisher.Refuse(ctx, row)
		}
		return nil
	default:
		return nil
	}
	verdict := core.Held(d.Reader.Judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if row.State == task.Queued {
		cleared, err := d.Reader.Cleared(ctx, row, verdict)
		if err != nil {
			return err
		}
		if cleared {
			d.Timers.Set(row.Seq, verdict.Deadline)
			return nil // it waits in the queue already
		}
	}
	return d.Reader.Apply(ctx, row, t, verdict)
}

// reconsiderHeld does what a held task asks for before it is judged again, and
// reports whether there is nothing left to do for it now.
func (d *Dispatcher) reconsiderHeld(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings) (bool, error) {
	if core.Unread(row) {
		return true, d.executor.ReconsiderUnread(ctx, row)
	}
	if core.WaitsForWords(row) {
		return true, d.completion.ReconsiderWords(ctx, row, t, findings)
	}
	if answered, err := d.placed.Foreign(ctx, row); answered || err != nil {
		return true, err
	}
	if left := d.Timers.RestLeft(row.Seq); left > 0 && store.Resting(row) && !row.WaitsForBudget() {
		d.Timers.After(row.Seq, left) // it was looked at for its result file alone
		return true, nil
	}
	return false, nil
}
