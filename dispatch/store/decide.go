package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A Loader returns the tasks that a command concerns, as a transaction sees them.
type Loader func(*Transaction) (*core.State, error)

// Decide lets the core decide a command, makes the decision durable, and takes the next step of
// each moved task. It returns the tasks after the command, and the error of the core:
// core.ErrStale when a task was moved after the facts of the command were gathered.
func (w *Writer) Decide(ctx context.Context, load Loader, c core.Command) (state *core.State, err error) {
	var answer error
	err = w.Update(ctx, func(tx *Transaction) (err error) {
		if state, err = load(tx); err == nil {
			answer, err = w.DecideIn(tx, state, c, time.Now())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return state, answer
}

// DecideIfCurrent is Decide for a command that is dropped when its task was moved after the
// facts of the command were gathered. It reports whether the command was carried out.
func (w *Writer) DecideIfCurrent(ctx context.Context, load Loader, c core.Command) (bool, error) {
	_, err := w.Decide(ctx, load, c)
	if errors.Is(err, core.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

// MustDecide is DecideIfCurrent with retries: a temporary error, such as a full disk, is tried
// again until the command is decided or ctx ends.
func (w *Writer) MustDecide(ctx context.Context, row task.Task, load Loader, c core.Command) (decided bool, err error) {
	err = w.Persist(ctx, row, func() (err error) {
		decided, err = w.DecideIfCurrent(context.WithoutCancel(ctx), load, c)
		return err
	})
	return decided, err
}

// DecideIn is Decide inside a transaction. It changes the state to the state after the command.
// The transaction may run again.
func (w *Writer) DecideIn(tx *Transaction, state *core.State, c core.Command, now time.Time) (answer, err error) {
	events, answer := core.Decide(state, c, core.Config{ApprovalTTL: w.Agents.ApprovalTTL(), MaxPriority: w.Opts.MaxPriority}, now)
	return answer, write(tx, state, events, addedRequest(c), now)
}

// addedRequest returns the request of the task that a command adds; nil for no task.
func addedRequest(c core.Command) []byte {
	switch c := c.(type) {
	case *core.Accept:
		return c.Request.Raw
	case *core.Resubmit:
		return c.Raw
	}
	return nil
}

// DecideOn is Decide inside a transaction, on one task as the transaction sees it. It reports
// false when the task was moved after the facts of the command were gathered.
func (w *Writer) DecideOn(tx *Transaction, seq int64, approvals bool, c core.Command) (next task.Task, decided bool, err error) {
	state, err := TaskLoader(seq, false, approvals)(tx)
	if err != nil {
		return task.Task{}, false, err
	}
	answer, err := w.DecideIn(tx, state, c, time.Now())
	if err != nil || errors.Is(answer, core.ErrStale) {
		return task.Task{}, false, err
	}
	if answer != nil {
		return task.Task{}, false, answer
	}
	return state.Task(seq).Task, true, nil
}

// write makes events durable, and applies them to the state that they were decided on. The
// request belongs to the task that the events add.
func write(tx *Transaction, state *core.State, events []core.Event, request []byte, now time.Time) error {
	digests := resultDigests(events)
	for i := range events {
		e := &events[i]
		if added, ok := e.Change.(*core.Added); ok {
			seq, err := tx.Add(added.Task, request, added.Waits...)
			if err != nil {
				return err
			}
			core.Number(events, seq)
		}
		if err := writeChange(tx, state, e, now); err != nil {
			return fmt.Errorf("write %T of task %d: %w", e.Change, e.Task, err)
		}
		before := rowOf(state, e.Task)
		core.Apply(state, events[i:i+1])
		tx.follow.note(e.Change, before, rowOf(state, e.Task))
		if e.Kind == "" {
			continue
		}
		if err := tx.Log(withResult(storedEvent(state, e, now), digests[i])); err != nil {
			return err
		}
	}
	return nil
}

// rowOf returns a task of a state; zero for none.
func rowOf(state *core.State, seq int64) task.Task {
	if t := state.Task(seq); t != nil {
		return t.Task
	}
	return task.Task{}
}

// storedEvent returns an event in the form of the ledger.
func storedEvent(state *core.State, e *core.Event, now time.Time) task.Event {
	stored := task.Event{Time: now, Kind: e.Kind, Of: e.Task}
	if t := state.Task(e.Task); t != nil {
		stored.Task, stored.Revision = t.ID, t.Revision
	}
	switch data := e.Data.(type) {
	case nil:
	case map[string]any:
		if len(data) > 0 {
			stored.Data = fields(data)
		}
	default:
		stored.Data = Encode(data)
	}
	return stored
}

// errMoved says that a task is in another state than the loaded one, although both were read in
// one transaction.
var errMoved = errors.New("it is not in the state that was read")

// writeChange makes the change of an event durable.
func writeChange(tx *Transaction, state *core.State, e *core.Event, now time.Time) error {
	switch c := e.Change.(type) {
	case *core.Moved:
		moved, err := tx.Move(e.Task, c.From, c.FromAttempt, c.Change)
		if err == nil && !moved {
			err = errMoved
		}
		return err
	case *core.Asked:
		return tx.Ask(c.Consent)
	case *core.Concluded:
		decided, err := tx.Decide(c.From, c.Consent)
		if err == nil && !decided {
			err = errMoved
		}
		return err
	case *core.RunIntended:
		return tx.StartRun(c.Run)
	case *core.RunEnded:
		return tx.FinishRun(c.Run)
	case *core.RunVoid:
		return tx.VoidRun(c.Run.Task, c.Run.Attempt)
	case *core.RunReleased:
		return tx.ReleaseRun(c.Run.Task, c.Run.Attempt)
	case *core.Settled:
		return tx.MarkPut(e.Task, true)
	case *core.Leased:
		return tx.Lease(state.Task(e.Task).Task, c.Token, now)
	case *core.Offered:
		return tx.Deliver(e.Task)
	case *core.Added, nil: // written before its number was known; an event alone
		return nil
	}
	return errors.New("writeChange has no case for it")
}

// TaskLoader returns a Loader of one task. began says whether an attempt was started. The
// approvals are loaded only if the command may need them.
func TaskLoader(seq int64, began, approvals bool) Loader {
	return func(tx *Transaction) (*core.State, error) {
		state := core.NewState()
		return state, load(tx, state, seq, began, approvals)
	}
}

// load adds a task to a state. It adds the run that a command may need, and the approvals if
// they are wanted.
func load(tx *Transaction, state *core.State, seq int64, began, approvals bool) error {
	row, found, err := tx.Task(seq)
	if err != nil || !found {
		return err
	}
	t := core.Task{Task: row, Began: began}
	if row.State == task.Waiting || core.Unread(row) || row.State == task.Running {
		run, found, err := tx.Run(task.RunName{Task: row.Seq, Attempt: row.Attempt})
		if err != nil {
			return err
		}
		if found {
			t.Run = &run
		}
		approvals = approvals || found && run.Terms.Calls != nil
	}
	if row.State == task.Waiting {
		delivery, err := tx.Delivery(row.Seq)
		if err != nil {
			return err
		}
		t.Token = delivery.Lease
	}
	if approvals {
		err = addConsents(tx, &t)
	}
	state.Add(t)
	return err
}

// LoadRevisions returns a state with the open revisions of a task and its latest revision.
func LoadRevisions(tx *Transaction, id envelope.ID) (*core.State, error) {
	state := core.NewState()
	latest, found, err := tx.Latest(id)
	if err != nil || !found {
		return state, err
	}
	if err := load(tx, state, latest.Seq, false, latest.State != task.Done); err != nil || latest.Revision == 1 {
		return state, err
	}
	open, err := tx.OpenRevisions(id)
	if err != nil {
		return state, err
	}
	for _, row := range open {
		if err := load(tx, state, row.Seq, false, true); err != nil {
			return state, err
		}
	}
	return state, nil
}

// addConsents adds the latest approval of each stage to a task, verified, and the approvals of calls
// of a running one.
func addConsents(tx *Transaction, t *core.Task) error {
	list, err := tx.Approvals(t.Seq)
	for _, c := range list {
		tx.verify(t.Task, &c)
		switch {
		case c.Stage == envelope.ApprovalPre:
			t.Start = &c
		case c.Stage == envelope.ApprovalPost && t.State == task.Review:
			t.Show = &c
		case c.Stage == envelope.ApprovalTool && t.State == task.Running:
			t.Calls = append(t.Calls, &c)
		}
	}
	return err
}
