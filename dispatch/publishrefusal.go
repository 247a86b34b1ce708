package dispatch

import (
	"context"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
)

// Intake does not put the result files of the tasks that it refuses. It would wait for the disk
// once per file, and delay the lines of other files. It lists the tasks once they are durable,
// and other goroutines put the files.

// publishLater lists a refused task. It never blocks. The engine isn't idle until the result is
// put.
func (st *steps) publishLater(row task.Task) { st.unpublished.Add(row.Seq) }

// publishRefusals puts the results of refused tasks until ctx ends. The next start finds the
// remaining ones.
func (st *steps) publishRefusals(ctx, work context.Context) {
	showing := make(chan struct{}, store.MaxPublishing)
	for {
		seq, ok := st.unpublished.Next(ctx)
		if !ok {
			return
		}
		showing <- struct{}{}
		st.executor.Finishing.Go(func() {
			st.publishRefusal(work, seq)
			<-showing
		})
	}
}

func (st *steps) publishRefusal(ctx context.Context, seq int64) {
	defer st.unpublished.Done(1)
	defer st.Runs.ForgetRefusal(seq)
	row, ok := st.Runs.Refusal(seq)
	if !ok {
		var err error
		if row, err = st.Ledger.Task(ctx, seq); err != nil {
			st.FaultLog.Report(store.Judging, row, err)
			st.Timers.After(seq, store.RetryPause)
			return
		}
	}
	st.advance(ctx, row)
}
