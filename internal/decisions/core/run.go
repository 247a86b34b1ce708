package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// run returns the run of the current attempt. Without one, it returns a run with the
// deadline of the task.
func (t *Task) run() task.Run {
	if t.Run == nil {
		return task.Run{Terms: task.Terms{Deadline: t.Deadline}}
	}
	return *t.Run
}

// endWaiting ends the run of a waiting task that is no longer to be answered. For any other
// task it does nothing.
func (d *decision) endWaiting(t *Task) {
	if t.State != task.Waiting || t.Run == nil {
		return
	}
	run := *t.Run
	run.Finished, run.ExitCode, run.Cause = d.now, -1, task.CauseInterrupted
	d.add(t, &RunEnded{Run: run}, "", nil)
}

// endUnread ends the run of a task whose unreadable answer is no longer needed. For any
// other task it does nothing.
func (d *decision) endUnread(t *Task) {
	if !Unread(t.Task) || t.Run == nil {
		return
	}
	run := *t.Run
	run.Started, run.Finished, run.ExitCode, run.Cause = run.Intent, d.now, -1, task.CauseLost
	d.add(t, &RunEnded{Run: run}, "", nil)
}

// Intend records the intent to run a queued task before its start. If a limit has too
// little left, it returns a Shortfall: the task waits for the budget, or ends if waiting
// can't help.
type Intend struct {
	Task     int64
	Attempt  int           // of the task as it was queued
	Agent    string        // of the task as it was queued
	To       task.State    // Running, or Waiting for its agent to fetch it
	Request  envelope.Task // for the refusal after a Shortfall
	Run      task.Run
	Spending Spending
	Stay     bool // the task stays in the queue after a Shortfall
}

func (c *Intend) decide(d *decision) error {
	t, err := d.queued(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	if t.Agent != c.Agent {
		return ErrStale
	}
	run, short := c.Spending.reserve(c.Run)
	switch {
	case short != nil && c.Stay:
		return short
	case short != nil:
		c.handleShortfall(d, t, short)
		return short
	}
	next := *t
	next.Run = &run
	d.add(&next, moved(t, task.Change{To: c.To, Attempt: run.Attempt}), "", nil)
	d.add(t, &RunIntended{Run: run}, "", nil)
	data := map[string]any{"attempt": run.Attempt, "run_id": run.ID}
	if c.To == task.Waiting {
		d.add(t, &Offered{}, task.KindTaskWaiting, data)
	} else {
		d.show(t, task.KindTaskStarted, data)
	}
	if run.At.IsRemote() {
		d.show(t, task.KindRunAssigned, map[string]any{"attempt": run.Attempt, "runner": run.At.Runner})
	}
	return nil
}

// handleShortfall holds a task until other runs leave enough budget, or ends it if they can't.
func (c *Intend) handleShortfall(d *decision, t *Task, short *Shortfall) {
	if short.Waits {
		change := task.Change{To: task.Held, Reasons: []task.Reason{task.Capacity}, Until: t.Deadline, Waits: []task.Wait{short.Wait()}}
		d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "why": short.Reason})
		return
	}
	d.show(t, task.KindBudgetExceeded, map[string]any{"reason": short.Reason})
	finding := envelope.Finding{Kind: envelope.BudgetExceeded, Field: "budget_limit", Message: short.Reason}
	d.reject(t, c.Request, task.Verdict{Findings: envelope.Findings{finding}, Terms: c.Run.Terms})
}

// Finish ends a task and its run with an answer. The agent's overseer reviews the answer
// first; without an overseer, an approver does if the terms of the run say so.
type Finish struct {
	Task        int64
	Seen        Seen
	Run         task.Run // the end of the run; zero: the run has ended before
	Status      envelope.Status
	Kind        envelope.Kind // what went wrong; "" for nothing
	Result      []byte
	Terms       task.Terms
	NoReview    bool      // the answer isn't an agent's, or is an overseer's
	Overseen    bool      // an overseer reviews the answer
	ReviewUntil time.Time // the overseer's time limit; zero: none
	Show        task.Kind // KindTaskFinished or KindTaskCancelled
	Data        any
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
		change.To, change.Until = task.Review, c.ReviewUntil
	case asks:
		change.To, change.Until = task.Review, d.expiry()
	}
	d.add(t, moved(t, change), c.Show, c.Data)
	if asks {
		d.askShow(t, c.Terms, c.Result, change.Until)
	}
	return nil
}

// finished returns the task and ends its run.
func (d *decision) finished(c *Finish) (*Task, error) {
	if c.Run.Attempt == 0 {
		return d.atAttempt(c.Task, c.Seen)
	}
	return d.ended(c.Task, c.Run, c.Run.Cause)
}

// HoldRecovered holds a queued task that may have begun in directories without a known run.
type HoldRecovered struct {
	Task    int64
	Attempt int // of the task as it was queued
	Last    int // the highest attempt that left traces
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

// HoldQueued holds a queued task for a reason that its next start found: task.RunDirectory until Release, since only a
// person can move away what is in the place of its run directory, or task.NoRunner until a runner that may have it has
// room. The attempt stays the same, since nothing was intended.
type HoldQueued struct {
	Task    int64
	Attempt int // of the task as it was queued
	Reason  task.Reason
	Why     string // names the path, or a runner
}

func (c *HoldQueued) decide(d *decision) error {
	t, err := d.queued(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	change := task.Change{To: task.Held, Reasons: []task.Reason{c.Reason}, Until: t.Deadline}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "message": c.Why})
	return nil
}

// HoldRestored holds an open task of a ledger that was restored from a backup, since the task
// may have run after the backup. A run that had not ended counts as lost. An answer that was
// given before the backup stays as it is.
type HoldRestored struct {
	Task int64
	Seen Seen
}

func (c *HoldRestored) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	switch {
	case err != nil:
		return err
	case t.State == task.Done, t.State == task.Review, Unread(t.Task), slices.Contains(t.Reasons, task.Recovered):
		return nil
	}
	if t.Run != nil && (t.State == task.Running || t.State == task.Waiting) {
		run := *t.Run
		run.Started, run.Finished, run.ExitCode, run.Cause = run.Intent, d.now, -1, task.CauseLost
		d.add(t, &RunEnded{Run: run}, "", nil)
	}
	change := task.Change{To: task.Held, Attempt: t.Attempt, Reasons: append(slices.Clone(t.Reasons), task.Recovered), Until: t.Deadline}
	switch t.State {
	case task.Received:
		change.To = task.Received // it also waits for the revision before
	case task.Held:
		change.Until = t.Until
	}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons})
	return nil
}

func (d *decision) queued(seq int64, attempt int) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.State != task.Queued || t.Attempt != attempt {
		return nil, ErrStale
	}
	return t, nil
}

// PutBack holds a task whose run doesn't count: its agent needs a login, or its provider has
// reached a usage limit.
type PutBack struct {
	Task   int64
	Reason task.Reason
	Until  time.Time // the deadline of the run, or the end of the limit before it; zero: none
	Run    task.Run  // the end of the run
	Data   map[string]any
}

func (c *PutBack) decide(d *decision) error {
	t, err := d.ended(c.Task, c.Run, task.CausePutBack)
	if err != nil {
		return err
	}
	d.hold(t, []task.Reason{c.Reason}, c.Until)
	if c.Reason == task.ProviderLimit {
		c.Data = with(c.Data, "until", formatTime(c.Until))
	}
	d.show(t, task.KindTaskPutBack, c.Data)
	return nil
}

// Retry holds a task until its next attempt.
type Retry struct {
	Task  int64
	Until time.Time
	Run   task.Run // the end of the attempt
	Data  map[string]any
}

func (c *Retry) decide(d *decision) error {
	t, err := d.ended(c.Task, c.Run, c.Run.Cause)
	if err != nil {
		return err
	}
	d.hold(t, []task.Reason{task.Capacity}, c.Until)
	d.show(t, task.KindTaskRetried, with(c.Data, "until", formatTime(c.Until)))
	return nil
}

// ended ends a run that hasn't ended, and returns its task if it still has this run. It
// keeps a run open whose answer is still to be read.
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

// KeepUnread holds a task with an unreadable answer until Release.
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

// Reread has a released task's unreadable answer read again.
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

// Void removes the intent of a run that never began, and queues its task again.
type Void struct {
	Task    int64
	Attempt int
	Keep    bool // keep the run in the ledger, without its reservation
	Show    bool // show an event
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
	if t.Run != nil && t.Run.At.IsRemote() {
		d.show(t, task.KindRunVoided, map[string]any{"attempt": t.Attempt, "runner": t.Run.At.Runner})
	}
	name := task.RunName{Task: t.Seq, Attempt: t.Attempt}
	if c.Keep {
		d.add(t, &RunReleased{Run: name}, "", nil)
	} else {
		d.add(t, &RunVoid{Run: name}, "", nil)
	}
	return nil
}

// TakeAnswer ends a task that hasn't started with a result file of another program, or asks
// an approver to approve that result first.
type TakeAnswer struct {
	Task   int64
	Seen   Seen
	Result envelope.Result
	Bytes  []byte
	Review bool       // an approver has to approve it
	Terms  task.Terms // the terms of the approval
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

// RefuseAnswer holds a task because its result file isn't a valid result. The task hasn't
// started, or waits for its agent.
type RefuseAnswer struct {
	Task  int64
	Seen  Seen
	Until time.Time      // the next look at the file; zero: none, the file was left alone long enough
	Data  map[string]any // data of the event; nil: no event
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
