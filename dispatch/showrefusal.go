package dispatch

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/task"
)

// Intake does not put the results of the tasks that it refuses: it would wait for
// the disk for each of them, and lines in other files with it. It lists them once
// they are durable, and others put them.

// showLater lists a task that was refused. It never blocks; nothing is idle until
// the result is put.
func (d *Dispatcher) showLater(row task.Task) {
	d.Queue.AddBusy()
	d.unshown.Add(row.Seq)
}

// showRefusals puts the results of refused tasks until ctx ends. The next start
// finds those that are left then.
func (d *Dispatcher) showRefusals(ctx, work context.Context) {
	showing := make(chan struct{}, store.MostShowing)
	for {
		seq, ok := d.unshown.Next(ctx)
		if !ok {
			return
		}
		showing <- struct{}{}
		d.executor.Finishing.Go(func() {
			d.showRefusal(work, seq)
			<-showing
		})
	}
}

func (d *Dispatcher) showRefusal(ctx context.Context, seq int64) {
	defer d.Queue.Done()
	defer d.Runs.ForgetRefusal(seq)
	row, ok := d.Runs.Refusal(seq)
	if !ok {
		var err error
		if row, err = d.Ledger.Task(ctx, seq); err != nil {
			d.FaultLog.Report(store.Judging, row, err)
			d.Timers.Set(seq, time.Now().Add(store.RetryPause))
			return
		}
	}
	d.proceed(ctx, row)
}
