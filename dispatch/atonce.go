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

// A start is a task that begins in the transaction that accepts it: one commit
// less lies between a line and its run, which is half a millisecond. That is for
// a line that comes alone to a free slot, asks for nothing that has to be looked
// into once more, and is for an agent whose runs have directories: one that is
// never begun after all is known by its directory.
type start struct {
	item       schedule.Item
	submission *submission
	job        task.Job
	run        *run // nil: it does not begin, and is accepted like any other
}

// startAtOnce makes ready for a submission to begin at once; nil when it is to wait
// for its turn. It takes the slots, and makes the run directory: of an intent
// without one nobody could say whether it began.
func (d *Dispatcher) startAtOnce(submissions []*submission) *start {
	if len(submissions) != 1 || !d.plain(submissions[0]) {
		return nil
	}
	c := submissions[0]
	s := &start{item: schedule.Item{Agent: c.task.Agent, Requester: c.task.Requester}, submission: c}
	if !d.queue.Reserve(s.item) {
		return nil
	}
	if d.pauses.has(c.task.Agent) { // since it was judged: whoever drains had no slot to see
		d.letGo(s)
		return nil
	}
	dir, err := d.newRunDir(c.task.ID, 1, 1)
	if err != nil { // it has run before, or whoever takes it from the queue meets that again
		d.letGo(s)
		return nil
	}
	fault.Point("run-dir")
	c.dir = dir
	s.job = task.Job{Task: c.task, Revision: 1, Attempt: 1, Dir: dir, RunID: uuid.NewString()}
	return s
}

// plain reports whether a submission is an AINL request of no agent's that nothing
// holds, and that nobody has answered by hand.
func (d *Dispatcher) plain(c *submission) bool {
	t := c.task
	return c.inbound == nil && t.ID != "" && c.judged.Admit && len(c.judged.Hold) == 0 && !d.agents.Known(t.Requester) &&
		d.agents.HasDir(t.Agent) && d.agents.Inbox(t.Agent).File == "" && !d.Box.HasResult(t.ID)
}

// begin adds to the transaction that has accepted a submission the intent to run it,
// if it is a new task's that is queued. It may be run again.
func (d *Dispatcher) begin(ctx context.Context, tx *transaction, s *start) error {
	d.forget(s)
	c := s.submission
	if c.fate != accepted || c.row.State != task.Queued || c.row.Revision != 1 || c.row.Parent != 0 {
		return nil
	}
	s.item.Seq = c.row.Seq
	s.run = d.runs.begin(context.WithoutCancel(ctx), s.item) // before anybody can see it running
	s.job.Terms = c.judged.Terms
	answer, err := d.intendIn(tx, c.row, false, &s.job, core.Intend{To: task.Running, Stay: true})
	if err != nil || answer != nil {
		d.forget(s) // it waits for its turn, and whoever has that finds out
		return err
	}
	c.row.State, c.row.Attempt = task.Running, s.job.Attempt
	return nil
}

// forget says that nothing came of a run that was to begin.
func (d *Dispatcher) forget(s *start) {
	if s.run != nil {
		d.runs.finish(s.run)
		s.run = nil
	}
}

// confirm returns a start that is durable. One that came to nothing it abandons,
// before a worker begins with the task, and returns nil.
func (d *Dispatcher) confirm(s *start) *start {
	if s == nil || s.run == nil {
		d.abandon(s)
		return nil
	}
	fault.Point("intent")
	return s
}

// handOver has a worker go on with a start.
func (d *Dispatcher) handOver(s *start) {
	if s != nil {
		it := s.item
		it.Begun = s
		d.queue.PushBegun(it)
		runtime.Gosched() // it goes on here and now, and not when another thread has woken up
	}
}

// abandon takes back what was made ready for a start that did not come to be. One
// that the ledger failed to take keeps its directory: the intent may be on the disk
// all the same.
func (d *Dispatcher) abandon(s *start) {
	if s == nil {
		return
	}
	if s.run == nil {
		if err := d.State.RemoveRunDir(s.job.Task.ID, s.job.Revision, s.job.Attempt); err != nil {
			d.opts.Log.Warn().Err(err).Msg("directory of a run that never began not removed")
		}
	} else {
		d.unused.keep(s.job.Dir)
	}
	d.forget(s)
	d.letGo(s)
}

func (d *Dispatcher) letGo(s *start) {
	d.queue.Release(s.item)
	d.queue.CancelReservation()
	d.queue.Done()
}
