package core

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// run is the run of the current attempt; one that began at no known time when there
// is none.
func (t *Task) run() task.Run {
	if t.Run == nil {
		return task.Run{Terms: task.Terms{Deadline: t.Deadline}}
	}
	return *t.Run
}

// endWaiting ends the run of a task that waits and that nobody is to answer any more.
// For any other task it does nothing.
func (d *decision) endWaiting(t *Task) {
	if t.State != task.Waiting || t.Run == nil {
		return
	}
	run := *t.Run
	run.Finished, run.ExitCode, run.Cause = d.now, -1, task.CauseInterrupted
	d.add(t, &RunEnded{Run: run}, "", nil)
}

// endUnread ends the run of a task whose answer can't be read and isn't wanted any
// more. For any other task it does nothing.
func (d *decision) endUnread(t *Task) {
	if !Unread(t.Task) || t.Run == nil {
		return
	}
	run := *t.Run
	run.Started, run.Finished, run.ExitCode, run.Cause = run.Intent, d.now, -1, task.CauseLost
	d.add(t, &RunEnded{Run: run}, "", nil)
}

// Intend is the decision to run a queued task, before anything is started. When a limit
// has too little room for the run, the answer is a Shortfall: the task waits for the
// budget, or it ends because no waiting helps.
type Intend struct {
	Task     int64
	Attempt  int           // of the task as it was queued
	To       task.State    // Running, or Waiting for its agent to fetch it
	Request  envelope.Task // what is refused after a Shortfall
	Run      task.Run
	Spending Spending
	Stay     bool // the task stays in the queue after a Shortfall
}

func (c *Intend) decide(d *decision) error {
	t, err := d.queued(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	run, short := c.Spending.reserve(c.Run)
	switch {
	case short != nil && c.Stay:
		return short
	case short != nil:
		c.without(d, t, short)
		return short
	}
	d.add(t, moved(t, task.Change{To: c.To, Attempt: run.Attempt}), "", nil)
	d.add(t, &RunIntended{Run: run}, "", nil)
	data := map[string]any{"attempt": run.Attempt, "run_id": run.ID}
	if c.To == task.Waiting {
		d.add(t, &Offered{}, task.KindTaskWaiting, data)
	} else {
		d.show(t, task.KindTaskStarted, data)
	}
	return nil
}

// without holds a task until other runs leave enough of a budget, or ends it when they
// can't.
func (c *Intend) without(d *decision, t *Task, short *Shortfall) {
	if short.Waits {
		change := task.Change{To: task.Held, Reasons: []task.Reason{task.Capacity}, Until: t.Deadline}
		d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "why": short.Reason})
		return
	}
	d.show(t, task.KindBudgetExceeded, map[string]any{"reason": short.Reason})
	finding := envelope.Finding{Kind: envelope.BudgetExceeded, Field: "budget_limit", Message: short.Reason}
	d.reject(t, c.Request, task.Verdict{Findings: envelope.Findings{finding}, Terms: c.Run.Terms})
}

// Finish ends a task with an answer, and the run that gave it. An overseer has to approve
// of the answer first when the agent has one, or else an approver when the terms of the
// run say so.
type Finish struct {
	Task     int64
	Seen     Seen
	Run      task.Run // how the run ended; zero: it has ended before
	Status   envelope.Status
	Kind     envelope.Kind // what went wrong; "" for nothing
	Result   []byte
	Terms    task.Terms
	NoReview bool      // no agent had a part in the answer, or it is an overseer's
	Overseen bool      // an overseer looks at the answer
	Patience time.Time // until when the overseer may decide; zero: without end
	Show     task.Kind // KindTaskFinished or KindTaskCancelled
	Data     any
}

func (c *Finish) decide(d *decision) error {
	t, err := d.finished(c)
	if err != nil {
		return err
	}
	change := task.Change{To: task.Done, Attempt: t.Attempt, Status: c.Status, Kind: c.Kind, Result: c.Result}
	asks := !c.Overseen && !c.NoReview && NeedsReview(c.Terms)
	switch {
	case c.Overseen:
		change.To, change.Until = task.Review, c.Patience
	case asks:
		change.To, change.Until = task.Review, d.expiry()
	}
	d.add(t, moved(t, change), c.Show, c.Data)
	if asks {
		d.askShow(t, c.Terms, c.Result, change.Until)
	}
	return nil
}

// finished returns the task that ends, with the end of its run.
func (d *decision) finished(c *Finish) (*Task, error) {
	if c.Run.Attempt == 0 {
		return d.inTurn(c.Task, c.Seen)
	}
	return d.ended(c.Task, c.Run, c.Run.Cause)
}

// HoldRecovered holds a queued task that may have begun in directories of which nobody
// knows a run.
type HoldRecovered struct {
	Task    int64
	Attempt int // of the task as it was queued
	Last    int // the highest attempt of which there are traces
	Unknown []string
}

func (c *HoldRecovered) decide(d *decision) error {
	t, err := d.queued(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	change := task.Change{To: task.Held, Attempt: c.Last, Reasons: []task.Reason{task.Recovered}, Until: t.Deadline}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "unknown_runs": c.Unknown})
	return nil
}

func (d *decision) queued(seq int64, attempt int) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.State != task.Queued || t.Attempt != attempt {
		return nil, ErrStale
	}
	return t, nil
}

// PutBack holds a task whose run did nothing for want of what only a person can give,
// such as a login.
type PutBack struct {
	Task   int64
	Reason task.Reason
	Until  time.Time // the deadline of the run; zero: none
	Run    task.Run  // how it ended
	Data   map[string]any
}

func (c *PutBack) decide(d *decision) error {
	t, err := d.ended(c.Task, c.Run, task.CausePutBack)
	if err != nil {
		return err
	}
	d.hold(t, []task.Reason{c.Reason}, c.Until)
	d.show(t, task.KindTaskPutBack, c.Data)
	return nil
}

// Again holds a task until another attempt.
type Again struct {
	Task  int64
	Until time.Time
	Run   task.Run // how the attempt ended
	Data  map[string]any
}

func (c *Again) decide(d *decision) error {
	t, err := d.ended(c.Task, c.Run, c.Run.Cause)
	if err != nil {
		return err
	}
	d.hold(t, []task.Reason{task.Capacity}, c.Until)
	d.show(t, task.KindTaskRetried, with(c.Data, "until", stamp(c.Until)))
	return nil
}

// ended adds the end of a run that hasn't ended, and returns the task if that still is in
// the run. One whose answer is still to be read hasn't ended.
func (d *decision) ended(seq int64, run task.Run, cause task.Cause) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.Attempt != run.Attempt || t.State != task.Running && t.State != task.Waiting {
		return nil, ErrStale
	}
	if t.Run != nil && t.Run.Attempt == run.Attempt && !t.Run.Settled {
		run.Cause = cause
		d.add(t, &RunEnded{Run: run}, "", nil)
	}
	return t, nil
}

// KeepUnread holds a task whose answer can't be read, until Release.
type KeepUnread struct {
	Task    int64
	Attempt int
	Why     string
}

func (c *KeepUnread) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt {
		return ErrStale
	}
	reasons := []task.Reason{task.AnswerUnread}
	d.add(t, moved(t, task.Change{To: task.Held, Reasons: reasons}), task.KindTaskHeld, map[string]any{"reasons": reasons, "message": c.Why})
	return nil
}

// Reread has the answer of a task read again that was released for that.
type Reread struct {
	Task    int64
	Attempt int
}

func (c *Reread) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || !Unread(t.Task) || t.Attempt != c.Attempt || t.Until.IsZero() {
		return ErrStale
	}
	d.add(t, moved(t, task.Change{To: task.Running}), "", nil)
	return nil
}

// Void takes back the intent of a run that never began, and queues its task again.
type Void struct {
	Task    int64
	Attempt int
	Keep    bool // the run stays in the ledger, without its reservation; false: nothing of it does
	Show    bool // with an event
}

func (c *Void) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt {
		return ErrStale
	}
	kind := task.Kind("")
	if c.Show {
		kind = task.KindTaskQueued
	}
	d.add(t, moved(t, task.Change{To: task.Queued}), kind, nil)
	name := task.RunName{Task: t.Seq, Attempt: t.Attempt}
	if c.Keep {
		d.add(t, &RunReleased{Run: name}, "", nil)
	} else {
		d.add(t, &RunVoid{Run: name}, "", nil)
	}
	return nil
}

// TakeAnswer ends a task that hasn't started with the result file that another program placed, or has an
// approver agree to that result first.
type TakeAnswer struct {
	Task   int64
	Seen   Seen
	Result envelope.Result
	Bytes  []byte
	Review bool       // an approver has to agree
	Terms  task.Terms // under which they are asked
}

func (c *TakeAnswer) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Held && t.State != task.Queued || t.State != c.Seen.State || t.Attempt != c.Seen.Attempt {
		return ErrStale
	}
	change := task.Change{To: task.Done, Status: c.Result.Status, Kind: c.Result.Error.Kind, Result: c.Bytes}
	if c.Review {
		change.To, change.Until = task.Review, d.expiry()
	}
	d.add(t, moved(t, change), "", nil)
	d.withdraw(t, "the task was answered by hand")
	d.endUnread(t)
	d.show(t, task.KindResultAdopted, map[string]any{"agent_id": c.Result.AgentID, "status": c.Result.Status})
	if c.Review {
		d.askShow(t, c.Terms, c.Bytes, change.Until)
	}
	return nil
}

// RefuseAnswer holds a task that hasn't started, or waits for its agent, behind a result file that is no result for it.
type RefuseAnswer struct {
	Task  int64
	Seen  Seen
	Until time.Time      // when the file is looked at again; zero: it was left alone long enough
	Data  map[string]any // what readers are shown about the file; nil: nothing yet
}

func (c *RefuseAnswer) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || t.State != task.Held && t.State != task.Queued && t.State != task.Waiting {
		return ErrStale
	}
	d.endWaiting(t)
	d.hold(t, append(Lasting(t.Reasons), task.ResultInvalid), c.Until)
	if c.Data != nil {
		d.show(t, task.KindResultInvalid, c.Data)
	}
	return nil
}
