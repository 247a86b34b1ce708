package dispatch

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
)

// Look takes in what is new in the mailbox: task lines, and results that
// somebody else placed. Events are hints, so it may be called at any time and
// from several goroutines. What it cannot do is logged once and tried again
// by the next look. It waits until Serve has recovered what was left over. It
// reports whether there may be more, because the queue is full; Serve looks
// again by itself when it has room. The error is logged already; it is for a caller
// that looks once.
func (d *Dispatcher) Look(ctx context.Context) (paused bool, err error) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return false, nil
	}
	d.looking.Lock()
	defer d.looking.Unlock()
	before := d.RecentRuns.Count()
	paused, err = d.intake.Look(ctx)
	d.steps.adoptPlaced(ctx)
	if err == nil && !paused {
		d.RecentRuns.Forget(before)
	}
	if ctx.Err() != nil {
		return paused, err
	}
	d.FaultLog.ReportIntake(err)
	if err != nil {
		select {
		case d.failed <- struct{}{}:
		default: // it will be looked at anyway
		}
	}
	return paused, err
}

// Unread reports whether a run has ended since the last look, so that what its
// agent asked for may lie there. It is for a caller that looks once.
func (d *Dispatcher) Unread() bool { return d.RecentRuns.Any() }

// lookWhenThereIsRoom goes on with intake that paused at a full queue, or that
// something kept from going on.
func (d *Dispatcher) lookWhenThereIsRoom(ctx context.Context) {
	var pause <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.failed:
			pause = time.After(store.RetryPause)
			continue
		case <-pause:
		case <-d.Queue.Room():
		}
		d.Look(ctx)
	}
}
