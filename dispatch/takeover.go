package dispatch

import (
	"context"

	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// recoverRun takes up a run whose daemon is gone. A run that was intended but
// never began is void and starts afresh; any other has its slots until it is
// over, and its answer is what lies in its directory.
func (x *executor) recoverRun(ctx context.Context, row task.Task) error {
	_, t, _, err := x.reader.load(ctx, row.Seq)
	if err != nil {
		return err
	}
	was, err := x.reader.runOf(ctx, row)
	if err != nil {
		return err
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		Dir: x.State.RunDir(row.ID, row.Revision, row.Attempt), RunID: was.ID, Allowance: was.Reserved, Terms: was.Terms,
	}
	same := was.Boot != "" && was.Boot == runner.Evidence(job.Dir) // else what the directory does not show proves nothing: it is not synced
	switch {
	case !x.agents.HasDir(row.Agent):
		job.Dir = ""
	case same && runner.Void(job.Dir):
		x.log(row).Info().Int("attempt", row.Attempt).Msg("run never began; starting afresh")
		return x.startAfresh(ctx, row)
	}
	x.log(row).Info().Int("attempt", row.Attempt).Msg("run of an earlier daemon found")
	it := schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}
	x.queue.Adopt(it)
	run := x.runs.begin(ctx, it)
	run.began.Store(true)
	x.publisher.guardRun(run, row, job.Terms)
	x.meters.measure(run, row, &job)
	job.Report = x.messenger.reporting(ctx, row)
	x.finishing.Go(func() {
		defer x.queue.Done()
		defer x.canceller.stopAgain(ctx, run)
		defer x.over(run)
		outcome := run.conclude(x.agents.Recover(run.ctx, job))
		x.queue.Release(it)
		if outcome, read := x.readAnswer(ctx, run, row, job, outcome); read {
			x.finish(ctx, row, job.Terms, outcome)
		}
	})
	return nil
}

// startAfresh queues a task whose run was intended and never began, as Void has
// made sure of.
func (x *executor) startAfresh(ctx context.Context, row task.Task) error {
	_, err := x.writer.decideIfCurrent(ctx, loads(row.Seq, false, false), &core.Void{Task: row.Seq, Attempt: row.Attempt, Keep: true, Show: true})
	return err
}
