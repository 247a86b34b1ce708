package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/task"
)

// Intake does not put the results of the tasks that it refuses: it would wait for
// the disk for each of them, and lines in other files with it. It lists them once
// they are durable, and others put them.

// showLater lists a task that was refused. It never blocks; nothing is idle until
// the result is put.
func (d *Dispatcher) showLater(row task.Task) {
	d.queue.AddBusy()
	d.unshown.Add(row.Seq)
}

// showRefusals puts the results of refused tasks until ctx ends. The next start
// finds those that are left then.
func (d *Dispatcher) showRefusals(ctx, work context.Context) {
	showing := make(chan struct{}, mostShowing)
	for {
		seq, ok := d.unshown.Next(ctx)
		if !ok {
			return
		}
		showing <- struct{}{}
		d.executor.finishing.Go(func() {
			d.showRefusal(work, seq)
			<-showing
		})
	}
}

func (d *Dispatcher) showRefusal(ctx context.Context, seq int64) {
	defer d.queue.Done()
	defer d.runs.forgetRefusal(seq)
	row, ok := d.runs.refusal(seq)
	if !ok {
		var err error
		if row, err = d.Ledger.Task(ctx, seq); err != nil {
			d.faults.report(judging, row, err)
			d.timers.Set(seq, time.Now().Add(retryPause))
			return
		}
	}
	d.proceed(ctx, row)
}
