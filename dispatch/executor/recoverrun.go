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
	if recorded.At.IsRemote() {
		x.recoverRemote(ctx, row, recorded, job)
		return nil
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
	x.await(ctx, schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}, row, job)
	return nil
}

// await keeps the slots of a run of an earlier daemon until it is over, and takes its outcome.
func (x *Executor) await(ctx context.Context, it schedule.Item, row task.Task, job task.Job) {
	x.Queue.Adopt(it)
	run := x.Runs.Begin(ctx, it)
	run.Began.Store(true)
	x.Publisher.GuardRun(run, row, job)
	x.addReports(ctx, run, row, &job)
	x.Finishing.Go(func() {
		outcome := run.Conclude(x.Agents.Recover(run.Ctx, job))
		x.Queue.Release(it)
		x.wrapUp(ctx, run, row, job, outcome)
	})
}

// startAfresh queues a task whose run never began; runner.Void has made sure that it never
// will.
func (x *Executor) startAfresh(ctx context.Context, row task.Task) error {
	_, err := x.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), &core.Void{Task: row.Seq, Attempt: row.Attempt, Keep: true, Show: true})
	return err
}
