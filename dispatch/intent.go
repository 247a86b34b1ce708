package dispatch

import (
	"context"
	"fmt"
	"time"

	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// intend makes durable that the job is about to be started, or to wait for who
// fetches it, with what it may spend, which becomes its Allowance. It reports
// false when the task was moved by somebody else meanwhile, or has to do without.
func (d *Dispatcher) intend(ctx context.Context, row task.Task, j *task.Job, to task.State) (task.Task, bool, error) {
	moved, since := false, d.waits.now()
	var short *shortage
	var intended task.Job
	err := d.update(ctx, func(tx *transaction) (err error) {
		intended = *j
		moved, short, err = d.intendIn(tx, row, &intended, to)
		return err
	})
	if err != nil {
		return row, false, fmt.Errorf("start %s: %w", row.ID, err)
	}
	if short != nil {
		return row, false, d.doWithout(ctx, row, *j, short, since)
	}
	fault.Point("intent")
	*j = intended
	row.State, row.Attempt = to, j.Attempt
	return row, moved, nil
}

// intendIn is intend in its transaction, which may be run again.
func (d *Dispatcher) intendIn(tx *transaction, row task.Task, j *task.Job, to task.State) (moved bool, short *shortage, err error) {
	run := task.Run{Task: row.Seq, Attempt: j.Attempt, ID: j.RunID, Intent: time.Now(), Boot: runner.Boot(), Terms: j.Terms}
	if short, err = d.reserve(tx, row, &run); err != nil || short != nil {
		return false, short, err
	}
	if j.Dir != "" {
		run.Boot = runner.Evidence(j.Dir)
	}
	_, moved, err = d.decideOn(tx, row.Seq, false, &core.Intend{Task: row.Seq, Attempt: row.Attempt, To: to, Run: run})
	j.Allowance, j.Terms = run.Reserved, run.Terms
	return moved, nil, err
}
