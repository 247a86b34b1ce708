package intake

import (
	"context"
	"runtime"

	"github.com/google/uuid"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// startAtOnce makes ready for a submission to begin at once; nil when it is to wait
// for a worker. It takes the slots, and makes the run directory: of an intent
// without one nobody could say whether it began.
func (in *Intake) startAtOnce(submissions []*exchange.Submission) *executor.Start {
	if len(submissions) != 1 || !in.plain(submissions[0]) {
		return nil
	}
	c := submissions[0]
	s := &executor.Start{Item: schedule.Item{Agent: c.Task.Agent, Requester: c.Task.Requester}, Submission: c}
	if !in.Queue.Reserve(s.Item) {
		return nil
	}
	if in.Pauses.Has(c.Task.Agent) { // since it was judged: Drain had no slot to see
		in.letGo(s)
		return nil
	}
	dir, err := in.Executor.NewRunDir(c.Task.ID, 1, 1)
	if err != nil { // it has run before, or the worker that takes it from the queue meets that again
		in.letGo(s)
		return nil
	}
	fault.Point("run-dir")
	c.Dir = dir
	s.Job = task.Job{Task: c.Task, Revision: 1, Attempt: 1, Dir: dir, RunID: uuid.NewString()}
	return s
}

// plain reports whether a submission is an AINL request of no agent's that nothing
// holds, and that nobody has answered by hand.
func (in *Intake) plain(c *exchange.Submission) bool {
	t := c.Task
	return c.Inbound == nil && t.ID != "" && c.Judged.Admit && len(c.Judged.Hold) == 0 && !in.Agents.Known(t.Requester) &&
		in.Agents.HasDir(t.Agent) && in.Agents.Inbox(t.Agent).File == "" && !in.Box.HasResult(t.ID)
}

// begin adds to the transaction that has accepted a submission the intent to run it,
// if it is a new task's that is queued. It may be run again.
func (in *Intake) begin(ctx context.Context, tx *store.Transaction, s *executor.Start) error {
	in.forget(s)
	c := s.Submission
	if c.Disposition != exchange.Accepted || c.Row.State != task.Queued || c.Row.Revision != 1 || c.Row.Parent != 0 {
		return nil
	}
	s.Item.Seq = c.Row.Seq
	s.Run = in.Runs.Begin(context.WithoutCancel(ctx), s.Item) // before anybody can see it running
	s.Job.Terms = c.Judged.Terms
	answer, err := in.Executor.IntendIn(tx, c.Row, false, &s.Job, core.Intend{To: task.Running, Stay: true})
	if err != nil || answer != nil {
		in.forget(s) // it waits in the queue, and its worker finds out
		return err
	}
	c.Row.State, c.Row.Attempt = task.Running, s.Job.Attempt
	return nil
}

// forget says that nothing came of a run that was to begin.
func (in *Intake) forget(s *executor.Start) {
	if s.Run != nil {
		in.Runs.Finish(s.Run)
		s.Run = nil
	}
}

// confirm returns a start that is durable. One that came to nothing it abandons,
// before a worker begins with the task, and returns nil.
func (in *Intake) confirm(s *executor.Start) *executor.Start {
	if s == nil || s.Run == nil {
		in.abandon(s)
		return nil
	}
	fault.Point("intent")
	return s
}

// handOver has a worker go on with a start.
func (in *Intake) handOver(s *executor.Start) {
	if s != nil {
		it := s.Item
		it.Begun = s
		in.Queue.PushBegun(it)
		runtime.Gosched() // it goes on here and now, and not when another thread has woken up
	}
}

// abandon takes back what was made ready for a start that did not come to be. One
// that the ledger failed to take keeps its directory: the intent may be on the disk
// all the same.
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
	in.forget(s)
	in.letGo(s)
}

func (in *Intake) letGo(s *executor.Start) {
	in.Queue.Release(s.Item)
	in.Queue.CancelReservation()
	in.Queue.Done()
}
