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
func (st *steps) showLater(row task.Task) {
	st.Queue.AddBusy()
	st.unshown.Add(row.Seq)
}

// showRefusals puts the results of refused tasks until ctx ends. The next start
// finds those that are left then.
func (st *steps) showRefusals(ctx, work context.Context) {
	showing := make(chan struct{}, store.MaxPublishing)
	for {
		seq, ok := st.unshown.Next(ctx)
		if !ok {
			return
		}
		showing <- struct{}{}
		st.executor.Finishing.Go(func() {
			st.showRefusal(work, seq)
			<-showing
		})
	}
}

func (st *steps) showRefusal(ctx context.Context, seq int64) {
	defer st.Queue.Done()
	defer st.Runs.ForgetRefusal(seq)
	row, ok := st.Runs.Refusal(seq)
	if !ok {
		var err error
		if row, err = st.Ledger.Task(ctx, seq); err != nil {
			st.FaultLog.Report(store.Judging, row, err)
			st.Timers.Set(seq, time.Now().Add(store.RetryPause))
			return
		}
	}
	st.resume(ctx, row)
}
