package intake

import (
	"context"
	"runtime"

	"github.com/google/uuid"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/fault"
)

// fastStart prepares a submission to start in its own transaction; nil when it has to wait for
// a worker. It reserves the slots and makes the run directory: without a directory, an intent
// does not show whether the run began.
func (in *Intake) fastStart(submissions []*exchange.Submission) *executor.Start {
	if len(submissions) != 1 || !in.mayStartFast(submissions[0]) {
		return nil
	}
	c := submissions[0]
	s := &executor.Start{Item: schedule.Item{Agent: c.Task.Agent, Requester: c.Task.Requester}, Submission: c}
	if !in.Queue.Reserve(s.Item) {
		return nil
	}
	if in.Pauses.Blocks(c.Task.Agent) { // paused after the verdict: Drain saw no slot in use
		in.releaseSlot(s)
		return nil
	}
	dir, err := in.Executor.NewRunDir(c.Task.ID, 1, 1)
	if err != nil { // it ran before; a worker handles any other error
		in.releaseSlot(s)
		return nil
	}
	fault.Point("run-dir")
	c.Dir = dir
	s.Job = task.Job{Task: c.Task, Revision: 1, Attempt: 1, Dir: dir, RunID: uuid.NewString()}
	return s
}

// mayStartFast reports whether a submission is an AINL request that no agent sent, no reason
// holds and no result file answers. Artifacts are looked up for the sensitivity of the run.
func (in *Intake) mayStartFast(c *exchange.Submission) bool {
	t := c.Task
	return c.Inbound == nil && t.ID != "" && c.Judged.Admit && len(c.Judged.Hold) == 0 && !in.Agents.Known(t.Requester) &&
		in.Agents.HasDir(t.Agent) && len(envelope.ArtifactsOf(t.Refs)) == 0 && in.Agents.Inbox(t.Agent).File == "" && !in.Box.HasResult(t.ID)
}

// begin adds the intent of the run to the transaction that has accepted a submission, if the
// task is new and queued. The transaction may run again.
func (in *Intake) begin(ctx context.Context, tx *store.Transaction, s *executor.Start) error {
	in.dropRun(s)
	c := s.Submission
	if c.Disposition != exchange.Accepted || c.Row.State != task.Queued || c.Row.Revision != 1 || c.Row.Parent != 0 {
		return nil
	}
	s.Item.Seq = c.Row.Seq
	s.Run = in.Runs.Begin(context.WithoutCancel(ctx), s.Item) // before its state is visible as running
	s.Job.Terms = c.Judged.Terms
	answer, err := in.Executor.IntendIn(tx, c.Row, false, &s.Job, core.Intend{To: task.Running, Stay: true})
	if err != nil || answer != nil {
		in.dropRun(s) // it waits in the queue, and a worker handles the shortfall
		return err
	}
	c.Row.State, c.Row.Attempt = task.Running, s.Job.Attempt
	return nil
}

// dropRun removes a run that did not begin.
func (in *Intake) dropRun(s *executor.Start) {
	if s.Run != nil {
		in.Runs.Finish(s.Run)
		s.Run = nil
	}
}

// confirm returns a durable start. A start that failed is abandoned before a worker takes the
// task from the queue; then confirm returns nil.
func (in *Intake) confirm(s *executor.Start) *executor.Start {
	if s == nil || s.Run == nil {
		in.abandon(s)
		return nil
	}
	fault.Point("intent")
	return s
}

// handOver lets a worker continue a start.
func (in *Intake) handOver(s *executor.Start) {
	if s != nil {
		it := s.Item
		it.Begun = s
		in.Queue.PushBegun(it)
		runtime.Gosched() // continue on this thread now, without the wake-up of another one
	}
}

// abandon takes back the preparations of a failed start. When the commit failed, the directory
// stays: the intent may be on the disk nevertheless.
func (in *Intake) abandon(s *executor.Start) {
	if s == nil {
		return
	}
	if s.Run == nil {
		if err := in.State.RemoveRunDir(s.Job.Task.ID, s.Job.Revision, s.Job.Attempt); err != nil {
			in.Opts.Log.Warn().Err(err).Msg("directory of a run that never began not removed")
		}
	} else {
		in.Unused.Keep(s.Job.Dir)
	}
	in.dropRun(s)
	in.releaseSlot(s)
}

func (in *Intake) releaseSlot(s *executor.Start) {
	in.Queue.Release(s.Item)
	in.Queue.CancelReservation()
	in.Queue.Done()
}
