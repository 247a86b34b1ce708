package executor

import (
	"context"
	"strings"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
)

// RecoverRun continues a run of an earlier daemon. A run that never began is void and starts
// again. Any other run keeps its slots until it is over, and its answer comes from its
// directory.
func (x *Executor) RecoverRun(ctx context.Context, row task.Task) error {
	_, t, _, err := x.Reader.Load(ctx, row.Seq)
	if err != nil {
		return err
	}
	recorded, err := x.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		Dir: x.State.RunDir(row.ID, row.Revision, row.Attempt), RunID: recorded.ID, Allowance: recorded.Reserved, Terms: recorded.Terms,
		Rebooted: recorded.Boot == "" || !strings.HasPrefix(recorded.Boot, runner.Boot()),
	}
	same := recorded.Boot != "" && recorded.Boot == runner.Evidence(job.Dir) // otherwise the directory was not synced, so a missing file proves nothing
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
	x.Publisher.GuardRun(run, row, job)
	x.addReports(ctx, run, row, &job)
	x.Finishing.Go(func() {
		defer x.Queue.Done()
		defer x.Canceller.StopAgain(ctx, run)
		defer x.endRun(run)
		outcome := run.Conclude(x.Agents.Recover(run.Ctx, job))
		x.Queue.Release(it)
		if outcome, read := x.readAnswer(ctx, run, row, job, outcome); read {
			x.finish(ctx, row, job.Terms, outcome)
		}
	})
	return nil
}

// startAfresh queues a task whose run never began; runner.Void has made sure that it never
// will.
func (x *Executor) startAfresh(ctx context.Context, row task.Task) error {
	_, err := x.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), &core.Void{Task: row.Seq, Attempt: row.Attempt, Keep: true, Show: true})
	return err
}
