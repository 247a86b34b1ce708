package dispatch

import (
	"context"
	"runtime"

	"github.com/google/uuid"

	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// startAtOnce makes ready for a submission to begin at once; nil when it is to wait
// for its turn. It takes the slots, and makes the run directory: of an intent
// without one nobody could say whether it began.
func (in *intake) startAtOnce(submissions []*submission) *start {
	if len(submissions) != 1 || !in.plain(submissions[0]) {
		return nil
	}
	c := submissions[0]
	s := &start{item: schedule.Item{Agent: c.task.Agent, Requester: c.task.Requester}, submission: c}
	if !in.queue.Reserve(s.item) {
		return nil
	}
	if in.pauses.has(c.task.Agent) { // since it was judged: whoever drains had no slot to see
		in.letGo(s)
		return nil
	}
	dir, err := in.executor.newRunDir(c.task.ID, 1, 1)
	if err != nil { // it has run before, or whoever takes it from the queue meets that again
		in.letGo(s)
		return nil
	}
	fault.Point("run-dir")
	c.dir = dir
	s.job = task.Job{Task: c.task, Revision: 1, Attempt: 1, Dir: dir, RunID: uuid.NewString()}
	return s
}

// plain reports whether a submission is an AINL request of no agent's that nothing
// holds, and that nobody has answered by hand.
func (in *intake) plain(c *submission) bool {
	t := c.task
	return c.inbound == nil && t.ID != "" && c.judged.Admit && len(c.judged.Hold) == 0 && !in.agents.Known(t.Requester) &&
		in.agents.HasDir(t.Agent) && in.agents.Inbox(t.Agent).File == "" && !in.Box.HasResult(t.ID)
}

// begin adds to the transaction that has accepted a submission the intent to run it,
// if it is a new task's that is queued. It may be run again.
func (in *intake) begin(ctx context.Context, tx *transaction, s *start) error {
	in.forget(s)
	c := s.submission
	if c.fate != accepted || c.row.State != task.Queued || c.row.Revision != 1 || c.row.Parent != 0 {
		return nil
	}
	s.item.Seq = c.row.Seq
	s.run = in.runs.begin(context.WithoutCancel(ctx), s.item) // before anybody can see it running
	s.job.Terms = c.judged.Terms
	answer, err := in.executor.intendIn(tx, c.row, false, &s.job, core.Intend{To: task.Running, Stay: true})
	if err != nil || answer != nil {
		in.forget(s) // it waits for its turn, and whoever has that finds out
		return err
	}
	c.row.State, c.row.Attempt = task.Running, s.job.Attempt
	return nil
}

// forget says that nothing came of a run that was to begin.
func (in *intake) forget(s *start) {
	if s.run != nil {
		in.runs.finish(s.run)
		s.run = nil
	}
}

// confirm returns a start that is durable. One that came to nothing it abandons,
// before a worker begins with the task, and returns nil.
func (in *intake) confirm(s *start) *start {
	if s == nil || s.run == nil {
		in.abandon(s)
		return nil
	}
	fault.Point("intent")
	return s
}

// handOver has a worker go on with a start.
func (in *intake) handOver(s *start) {
	if s != nil {
		it := s.item
		it.Begun = s
		in.queue.PushBegun(it)
		runtime.Gosched() // it goes on here and now, and not when another thread has woken up
	}
}

// abandon takes back what was made ready for a start that did not come to be. One
// that the ledger failed to take keeps its directory: the intent may be on the disk
// all the same.
func (in *intake) abandon(s *start) {
	if s == nil {
		return
	}
	if s.run == nil {
		if err := in.State.RemoveRunDir(s.job.Task.ID, s.job.Revision, s.job.Attempt); err != nil {
			in.opts.Log.Warn().Err(err).Msg("directory of a run that never began not removed")
		}
	} else {
		in.unused.keep(s.job.Dir)
	}
	in.forget(s)
	in.letGo(s)
}

func (in *intake) letGo(s *start) {
	in.queue.Release(s.item)
	in.queue.CancelReservation()
	in.queue.Done()
}
