package core

import (
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// WaitsForWords is [conversation.Suspended].
func WaitsForWords(t task.Task) bool { return conversation.Suspended(t) }

// EndRun ends a run, whatever becomes of its task.
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

// Wait holds a task whose agent has spoken, until somebody replies or other tasks end.
type Wait struct {
	Task   int64
	Seen   Seen
	Reason task.Reason // Reply or Children
	Until  time.Time   // the end of the wait; zero: none
	Result []byte      // what becomes the answer at that end; nil: nothing does
}

func (c *Wait) decide(d *decision) error {
	t, err := d.inTurn(c.Task, c.Seen)
	if err != nil {
		return err
	}
	reasons := []task.Reason{c.Reason}
	change := task.Change{To: task.Held, Attempt: t.Attempt, Reasons: reasons, Until: c.Until, Result: c.Result}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": reasons, "attempt": t.Attempt})
	return nil
}

// Wake lets a task start again whose agent has what it waited for, unless something else
// holds the task as well.
type Wake struct {
	Task    int64
	Attempt int
	Data    map[string]any // who spoke
}

func (c *Wake) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Held || t.Attempt != c.Attempt {
		return ErrStale
	}
	change := task.Change{To: task.Queued, Attempt: t.Attempt}
	if rest := slices.DeleteFunc(slices.Clone(t.Reasons), conversation.Suspends); len(rest) > 0 {
		change.To, change.Reasons, change.Until = task.Held, rest, d.now // what is left is judged at once
	}
	d.add(t, moved(t, change), task.KindTaskResumed, c.Data)
	return nil
}

// inTurn finds a task whose agent, or what it waited for, has come to an end.
func (d *decision) inTurn(seq int64, was Seen) (*Task, error) {
	t := d.state.tasks[seq]
	if t == nil || t.State == task.Done || t.State != was.State || t.Attempt != was.Attempt {
		return nil, ErrStale
	}
	return t, nil
}

// Reconsider takes a task back to its overseer, whose question the agent has answered
// without another answer.
type Reconsider struct {
	Task     int64
	Seen     Seen
	Until    time.Time // how long the overseer may take; zero: without end
	Overseer string
}

func (c *Reconsider) decide(d *decision) error {
	t, err := d.inTurn(c.Task, c.Seen)
	if err != nil {
		return err
	}
	change := task.Change{To: task.Review, Attempt: t.Attempt, Until: c.Until}
	d.add(t, moved(t, change), task.KindOversightAnswered, map[string]any{"overseer": c.Overseer})
	return nil
}

// SendBack has an agent run again whose overseer asks something about its answer.
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

// PassReview shows an answer of which its overseer approves, or has an approver agree
// to it as well.
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

// FailReview ends a task in review whose overseer doesn't approve of its answer, or
// can't be asked. The answer isn't shown.
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
	change := task.Change{To: task.Done, Status: envelope.Failed, Kind: c.Kind, Result: Withheld(c.Request, c.Result, envelope.Failed, c.Kind, c.Why)}
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

// NeedsReview reports whether an approver has to agree to an answer.
func NeedsReview(terms task.Terms) bool {
	return terms.Approval == envelope.ApprovalPost || terms.Approval == envelope.ApprovalBoth
}
