package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// Intake does not put the results of the tasks that it refuses: it would wait for
// the disk for each of them, and lines in other files with it. It lists them once
// they are durable, and others put them.

const (
	mostShowing = 64   // refusals whose results are put at once: they share the commits that mark them
	mostInHand  = 1024 // refusals that are kept in memory until then; of others the ledger is asked
)

// A refusedTask is a task that was refused, with all that its result file takes.
type refusedTask struct {
	row task.Task
	run *run // has the result and the callback; nothing was run
}

// refuse remembers what there is to show of a task, if there is room. Whoever
// refuses one says so before that is committed; see follow.
func (s *runSet) refuse(row task.Task, c *submission) {
	r := &run{item: schedule.Item{Seq: row.Seq}}
	r.result.Store(&c.refusal)
	r.callback.Store(&c.task.Callback)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < mostInHand {
		s.refused[row.Seq] = refusedTask{row, r}
	}
}

// refusal returns a task that refuse remembers, if it does.
func (s *runSet) refusal(seq int64) (task.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.refused[seq]
	return t.row, ok
}

// forgetRefusal lets go of a task that refuse may remember.
func (s *runSet) forgetRefusal(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, seq)
}

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
