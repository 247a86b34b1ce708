package executor

import (
	"context"

	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// RecoverRun takes up a run whose daemon is gone. A run that was intended but
// never began is void and starts afresh; any other has its slots until it is
// over, and its answer is what lies in its directory.
func (x *Executor) RecoverRun(ctx context.Context, row task.Task) error {
	_, t, _, err := x.Reader.Load(ctx, row.Seq)
	if err != nil {
		return err
	}
	was, err := x.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		Dir: x.State.RunDir(row.ID, row.Revision, row.Attempt), RunID: was.ID, Allowance: was.Reserved, Terms: was.Terms,
	}
	same := was.Boot != "" && was.Boot == runner.Evidence(job.Dir) // else what the directory does not show proves nothing: it is not synced
	switch {
	case !x.Agents.HasDir(row.Agent):
		job.Dir = ""
	case same && runner.Void(job.Dir):
		x.Log(row).Info().Int("attempt", row.Attempt).Msg("run never began; starting afresh")
		return x.startAfresh(ctx, row)
	}
	x.Log(row).Info().Int("attempt", row.Attempt).Msg("run of an earlier daemon found")
	it := schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}
	x.Queue.Adopt(it)
	run := x.Runs.Begin(ctx, it)
	run.Began.Store(true)
	x.Publisher.GuardRun(run, row, job.Terms)
	x.Meters.Measure(run, row, &job)
	job.Report = x.Messenger.Reporting(ctx, row)
	x.Finishing.Go(func() {
		defer x.Queue.Done()
		defer x.Canceller.StopAgain(ctx, run)
		defer x.over(run)
		outcome := run.Conclude(x.Agents.Recover(run.Ctx, job))
		x.Queue.Release(it)
		if outcome, read := x.readAnswer(ctx, run, row, job, outcome); read {
			x.finish(ctx, row, job.Terms, outcome)
		}
	})
	return nil
}

// startAfresh queues a task whose run was intended and never began, as Void has
// made sure of.
func (x *Executor) startAfresh(ctx context.Context, row task.Task) error {
	_, err := x.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), &core.Void{Task: row.Seq, Attempt: row.Attempt, Keep: true, Show: true})
	return err
}
