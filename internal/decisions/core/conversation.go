package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// EndRun ends a run; the state of its task doesn't change.
type EndRun struct {
	Task int64
	Run  task.Run // how it ended
}

func (c *EndRun) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.Run == nil || t.Run.Attempt != c.Run.Attempt || t.Run.Settled {
		return ErrStale
	}
	d.add(t, &RunEnded{Run: c.Run}, "", nil)
	return nil
}

// Wait holds a task whose agent has sent a message, until a reply comes or other tasks end.
type Wait struct {
	Task   int64
	Seen   Seen
	Reason task.Reason // Reply or Children
	Until  time.Time   // the end of the wait; zero: none
	Result []byte      // the result if the wait times out; nil: none
}

func (c *Wait) decide(d *decision) error {
	t, err := d.atAttempt(c.Task, c.Seen)
	if err != nil {
		return err
	}
	reasons := []task.Reason{c.Reason}
	change := task.Change{To: task.Held, Attempt: t.Attempt, Reasons: reasons, Until: c.Until, Result: c.Result}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": reasons, "attempt": t.Attempt})
	return nil
}

// Wake queues a task again when its agent has the reply or the results it waited for. Other
// hold reasons keep holding the task.
type Wake struct {
	Task    int64
	Attempt int
	Data    map[string]any // who sent the reply
}

func (c *Wake) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Held || t.Attempt != c.Attempt {
		return ErrStale
	}
	change := task.Change{To: task.Queued, Attempt: t.Attempt}
	if rest := slices.DeleteFunc(slices.Clone(t.Reasons), conversation.Suspends); len(rest) > 0 {
		change.To, change.Reasons, change.Until = task.Held, rest, d.now // the remaining reasons are judged at once
	}
	d.add(t, moved(t, change), task.KindTaskResumed, c.Data)
	return nil
}

// atAttempt returns a task if its state and attempt haven't changed.
func (d *decision) atAttempt(seq int64, was Seen) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.State == task.Done || t.State != was.State || t.Attempt != was.Attempt {
		return nil, ErrStale
	}
	return t, nil
}

// Reevaluate returns a task to review. The agent answered the overseer's question and kept its
// answer.
type Reevaluate struct {
	Task     int64
	Seen     Seen
	Until    time.Time // the overseer's time limit; zero: none
	Overseer string
}

func (c *Reevaluate) decide(d *decision) error {
	t, err := d.atAttempt(c.Task, c.Seen)
	if err != nil {
		return err
	}
	change := task.Change{To: task.Review, Attempt: t.Attempt, Until: c.Until}
	d.add(t, moved(t, change), task.KindOversightAnswered, map[string]any{"overseer": c.Overseer})
	return nil
}

// SendBack queues a task again because its overseer asks about the answer.
type SendBack struct {
	Task    int64
	Attempt int
	By      string      // the overseer
	Review  envelope.ID // the overseer's task
	Round   int
	Words   string
}

func (c *SendBack) decide(d *decision) error {
	t, err := d.inReview(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	data := map[string]any{"by": c.By, "task": c.Review, "round": c.Round, "words": c.Words}
	d.add(t, moved(t, task.Change{To: task.Queued}), task.KindOversightInquired, data)
	return nil
}

// PassReview finishes a task with the answer that its overseer approves, or asks an
// approver to approve it too.
type PassReview struct {
	Task    int64
	Attempt int
	By      string      // the overseer
	Review  envelope.ID // the overseer's task
	Words   string
	Terms   task.Terms // of the run that gave the answer
	Result  []byte     // the answer
}

func (c *PassReview) decide(d *decision) error {
	t, err := d.inReview(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	data := map[string]any{"by": c.By, "task": c.Review}
	if c.Words != "" {
		data["words"] = c.Words
	}
	d.show(t, task.KindOversightApproved, data)
	if !NeedsReview(c.Terms) {
		d.add(t, moved(t, task.Change{To: task.Done}), "", nil)
		return nil
	}
	until := d.expiry()
	d.add(t, moved(t, task.Change{To: task.Review, Until: until}), "", nil)
	d.askShow(t, c.Terms, c.Result, until)
	return nil
}

// FailReview ends a task in review without showing its answer. The overseer rejects the
// answer or can't be asked.
type FailReview struct {
	Task    int64
	Attempt int
	Kind    envelope.Kind // OversightRejected or OversightExpired
	Why     string
	Request envelope.Task
	Result  []byte // the answer
}

func (c *FailReview) decide(d *decision) error {
	t, err := d.inReview(c.Task, c.Attempt)
	if err != nil {
		return err
	}
	if isOpen(t.Show) {
		return ErrStale // the overseer has approved meanwhile
	}
	kind := task.KindOversightExpired
	if c.Kind == envelope.OversightRejected {
		kind = task.KindOversightRejected
	}
	change := task.Change{To: task.Done, Status: envelope.Failed, Kind: c.Kind, Result: d.withheld(c.Request, c.Result, envelope.Failed, c.Kind, c.Why)}
	d.add(t, moved(t, change), kind, map[string]any{"reason": c.Why})
	return nil
}

func (d *decision) inReview(seq int64, attempt int) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.State != task.Review || t.Attempt != attempt {
		return nil, ErrStale
	}
	return t, nil
}

// NeedsReview reports whether an approver has to approve an answer.
func NeedsReview(terms task.Terms) bool {
	return terms.Approval == envelope.ApprovalPost || terms.Approval == envelope.ApprovalBoth
}
