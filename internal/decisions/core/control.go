package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Lasting returns the reasons that a verdict keeps.
func Lasting(reasons []task.Reason) []task.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r task.Reason) bool { return !r.Facts().Lasts })
}

// Hold keeps the latest revision of a task from starting until Release.
type Hold struct {
	Task int64
	Seen Seen
	By   By
}

func (c *Hold) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	switch {
	case err != nil:
		return err
	case !Startable(t.State):
		return StateErrorOf(t.Task)
	case slices.Contains(t.Reasons, task.Operator) || Unread(t.Task):
		return nil // already held
	}
	change := task.Change{To: task.Held, Reasons: append(slices.Clone(t.Reasons), task.Operator), Until: t.Until}
	if t.State == task.Received {
		change.To = task.Received // it also waits for the revision before
	}
	if change.Until.IsZero() {
		change.Until = t.Deadline
	}
	d.add(t, moved(t, change), task.KindTaskHeld, with(c.By.Data(), "reasons", change.Reasons))
	return nil
}

// Releasable reports whether Release removes a reason. It doesn't remove AnswerUnread: the
// answer is read again.
func Releasable(r task.Reason) bool {
	return r != task.AnswerUnread && r.Facts().Action == task.Release
}

// Release removes the reasons that are Releasable. The remaining reasons are
// judged again at once. If the answer of the task was unreadable, it is read again. If the
// task lacks a callback, the callback is made again.
type Release struct {
	Task int64
	Seen Seen
	By   By
}

func (c *Release) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	switch {
	case err != nil:
		return err
	case Unread(t.Task):
		change := task.Change{To: task.Held, Reasons: t.Reasons, Until: d.now}
		d.add(t, moved(t, change), task.KindTaskReleased, c.By.Data())
		return nil
	case t.LacksCallback():
		d.show(t, task.KindTaskReleased, c.By.Data())
		return nil
	case !slices.ContainsFunc(t.Reasons, Releasable):
		return StateErrorOf(t.Task)
	}
	rest := slices.DeleteFunc(slices.Clone(t.Reasons), Releasable)
	change := task.Change{To: t.State, Reasons: rest, Until: d.now}
	if t.State == task.Received {
		change.Until = time.Time{}
	}
	data := c.By.Data()
	if len(rest) > 0 {
		data["reasons"] = rest
	}
	d.add(t, moved(t, change), task.KindTaskReleased, data)
	return nil
}

// Cancel ends a task that isn't running. The answer of a task in review isn't shown.
type Cancel struct {
	Task    int64
	Seen    Seen
	By      By
	Request envelope.Task
	Levels  envelope.Levels // of a verdict on a start now
	Result  []byte          // the answer in review; nil otherwise
}

func (c *Cancel) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || t.State == task.Running || t.State == task.Done {
		return ErrStale
	}
	change := task.Change{To: task.Done, Status: envelope.Stopped, Kind: envelope.Cancelled, Result: c.result(d, t)}
	d.add(t, moved(t, change), "", nil)
	d.endWaiting(t)
	d.withdraw(t, "the task is over")
	d.endUnread(t)
	d.show(t, task.KindTaskCancelled, c.By.Data())
	return nil
}

func (c *Cancel) result(d *decision, t *Task) []byte {
	why := "cancelled by " + c.By.String()
	switch t.State {
	case task.Waiting:
		return NotAnswered(c.Request, t.run(), envelope.Stopped, envelope.Cancelled, why, d.now).Encode()
	case task.Review:
		return d.withheld(c.Request, c.Result, envelope.Stopped, envelope.Cancelled, why)
	}
	return NotRun(c.Request, envelope.Stopped, envelope.Cancelled, why, t.Began, c.Levels, d.now)
}

// Retriable reports whether Resubmit accepts a task in its final status.
func Retriable(t task.Task) bool {
	return t.State == task.Done && slices.Contains([]envelope.Status{envelope.Failed, envelope.Stopped, envelope.Rejected}, t.Status)
}

// Resubmit adds a revision to a finished task, with the content of the last one. The last
// revision keeps its runs and events, and its result moves to the history.
type Resubmit struct {
	Task    int64
	By      By
	Raw     []byte // the stored request
	Verdict task.Verdict
}

func (c *Resubmit) decide(d *decision) error {
	last := d.state.tasks[c.Task]
	switch {
	case last == nil || !last.Latest:
		return ErrStale
	case !Retriable(last.Task):
		return StateErrorOf(last.Task)
	case !c.Verdict.Admit:
		return ErrStillRefused
	}
	next := Task{Task: task.Task{
		Seq: New, ID: last.ID, Revision: last.Revision + 1, Hash: last.Hash, Dialect: last.Dialect,
		State: task.Queued, Agent: last.Agent, Requester: last.Requester, Type: last.Type,
		Deadline: last.Deadline, Received: d.now, File: last.File, Offset: last.Offset,
		Latest: true, Replaces: true, Parent: last.Parent, Depth: last.Depth, Priority: min(last.Priority, d.cfg.MaxPriority),
	}}
	if len(c.Verdict.Hold) > 0 {
		next.State, next.Reasons, next.Until = task.Held, c.Verdict.Hold, c.Verdict.Until
	}
	if d.behindEarlier(last) {
		next.State, next.Reasons, next.Until = task.Received, nil, time.Time{}
	}
	asks := WantsApproval(next.Reasons)
	if asks {
		next.Until = Earliest(next.Until, d.decisionDue(next.Task))
	}
	data := with(c.By.Data(), "of_revision", last.Revision)
	if next.State == task.Held {
		data = with(data, "held", next.Reasons)
	}
	d.add(&next, &Added{Task: next.Task}, task.KindTaskResubmitted, data)
	if asks {
		d.askStart(&next, c.Verdict)
	}
	return nil
}

// behindEarlier reports whether an earlier revision of a task is in hand. It supersedes the
// unfinished revisions that aren't.
func (d *decision) behindEarlier(last *Task) (waits bool) {
	for _, earlier := range d.state.ids[last.ID] {
		switch {
		case earlier.State == task.Done:
		case InHand(earlier.Task, d.now):
			waits = true
		default:
			d.supersede(earlier)
		}
	}
	return waits
}

// supersede ends a revision that a later one replaces before its start. It writes no
// result: the result file is for the latest revision.
func (d *decision) supersede(t *Task) {
	d.add(t, moved(t, task.Change{To: task.Done, Status: envelope.Stopped}), "", nil)
	d.add(t, &Settled{}, "", nil)
	d.endWaiting(t)
	d.withdraw(t, "a newer request took its place")
	d.show(t, task.KindTaskSuperseded, nil)
}
