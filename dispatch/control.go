package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// By says who wants something, and why. It is for the record; whether they
// may is settled before.
type By struct {
	Who    string
	Reason string // may be empty
}

func (b By) String() string {
	if b.Reason == "" {
		return b.Who
	}
	return b.Who + ": " + b.Reason
}

// data is how a By stands in an event.
func (b By) data() map[string]any {
	data := map[string]any{"by": b.Who}
	if b.Reason != "" {
		data["reason"] = b.Reason
	}
	return data
}

// A StateError says that what was asked for does not go with where the task is.
type StateError struct {
	State   task.State
	Status  envelope.Status // of a task that is Done
	Reasons []task.Reason   // of one that is Held
}

func (e *StateError) Error() string {
	switch {
	case e.Status != "":
		return fmt.Sprintf("it is %s already (%s)", e.State, e.Status)
	case len(e.Reasons) > 0:
		words := make([]string, len(e.Reasons))
		for i, r := range e.Reasons {
			words[i] = string(r)
		}
		return fmt.Sprintf("it is %s (%s)", e.State, strings.Join(words, ", "))
	}
	if e.State == task.Review {
		return "it is in review"
	}
	return fmt.Sprintf("it is %s", e.State)
}

func stateError(row task.Task) error {
	e := &StateError{State: row.State, Reasons: row.Reasons}
	if row.State == task.Done {
		e.Status = row.Status // one in review has it already, and is not over
	}
	return e
}

// lasting are the reasons that only Release takes away: no verdict, reload or
// restart does.
var lasting = []task.Reason{task.Operator, task.Recovered, task.AuthRequired}

// lastingOf returns the lasting ones among some reasons, which no verdict takes
// away.
func lastingOf(reasons []task.Reason) []task.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r task.Reason) bool { return !slices.Contains(lasting, r) })
}

// withReasons adds reasons to hold a task to a verdict that admits it. A
// deadline that binds is looked after also while nobody acts.
func withReasons(v task.Verdict, reasons ...task.Reason) task.Verdict {
	if !v.Admit || len(reasons) == 0 {
		return v
	}
	if len(v.Hold) == 0 {
		v.Until = v.Deadline
	}
	v.Hold = slices.Clone(v.Hold)
	for _, r := range reasons {
		if !slices.Contains(v.Hold, r) {
			v.Hold = append(v.Hold, r)
		}
	}
	return v
}

// Hold keeps the latest revision of a task from starting until Release. One
// that is running or done is a *StateError; an id that is not known wraps
// ledger.ErrUnknown.
func (d *Dispatcher) Hold(ctx context.Context, id envelope.ID, by By) error {
	return d.control(ctx, "hold", id, func(row task.Task) (task.Task, bool, error) {
		switch {
		case row.State != task.Queued && row.State != task.Held && row.State != task.Received:
			return row, false, stateError(row)
		case slices.Contains(row.Reasons, task.Operator) || unread(row):
			return row, true, nil // as asked
		}
		change := task.Change{To: task.Held, Reasons: append(slices.Clone(row.Reasons), task.Operator), Until: row.Until}
		if row.State == task.Received {
			change.To = task.Received // it has to wait for its turn as well
		}
		if change.Until.IsZero() {
			change.Until = row.Deadline
		}
		return d.change(ctx, row, change, event(row, task.KindTaskHeld, with(by.data(), "reasons", change.Reasons)))
	})
}

// Release takes away what only a person can: an operator's hold, that of a
// task which may have run before the ledger was lost, and that of one whose
// agent had to be logged in. It lifts nothing else,
// and no approval. A task whose answer could not be read has it read again, and
// is not run for that. A task that is not held so is a *StateError.
func (d *Dispatcher) Release(ctx context.Context, id envelope.ID, by By) error {
	return d.control(ctx, "release", id, func(row task.Task) (task.Task, bool, error) {
		revisions, err := d.revisions(ctx, id)
		if err != nil {
			return row, false, err
		}
		if at := slices.IndexFunc(revisions, unread); at >= 0 {
			return d.releaseUnread(ctx, revisions[at], by)
		}
		if len(lastingOf(row.Reasons)) == 0 {
			return row, false, stateError(row)
		}
		rest := slices.DeleteFunc(slices.Clone(row.Reasons), func(r task.Reason) bool { return slices.Contains(lasting, r) })
		change := task.Change{To: row.State, Reasons: rest, Until: time.Now()} // what is left is judged at once
		if row.State == task.Received {
			change.Until = time.Time{}
		}
		data := by.data()
		if len(rest) > 0 {
			data = with(data, "reasons", rest)
		}
		return d.change(ctx, row, change, event(row, task.KindTaskReleased, data))
	})
}

// control does something to the latest revision of a task: again when
// somebody else moved it meanwhile, and not before Serve has recovered.
func (d *Dispatcher) control(ctx context.Context, verb string, id envelope.ID, do func(task.Task) (task.Task, bool, error)) error {
	if err := d.whenReady(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	for {
		row, err := d.newest(ctx, id)
		moved := false
		if err == nil {
			row, moved, err = do(row)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, id, err)
		}
		if moved {
			d.proceedNow(context.WithoutCancel(ctx), row)
			return nil
		}
	}
}

// change moves a task with its event, and returns it as it is then. It does not when
// somebody changed it since it was read, if only what it waits for.
func (d *Dispatcher) change(ctx context.Context, row task.Task, c task.Change, e task.Event, also ...func(*ledger.Tx) error) (task.Task, bool, error) {
	c.Attempt = row.Attempt
	moved := false
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		if moved, err = unmoved(tx, row); err != nil || !moved {
			return err
		}
		if moved, err = tx.Move(row.Seq, row.State, row.Attempt, c); err != nil || !moved {
			return err
		}
		if err := endUnanswered(tx, row, time.Now()); err != nil {
			return err
		}
		if c.To == task.Done {
			if err := withdraw(tx, row, time.Now(), "the task is over"); err != nil {
				return err
			}
			if err := endUnread(tx, row, time.Now()); err != nil {
				return err
			}
		}
		for _, do := range also {
			if err := do(tx); err != nil {
				return err
			}
		}
		return tx.Log(e)
	})
	if err != nil || !moved {
		return row, false, err
	}
	if c.To == task.Done || !unread(row) {
		d.settledUnanswered(ctx, row)
	}
	row.State, row.Reasons, row.Until = c.To, c.Reasons, c.Until
	if c.To == task.Done {
		row.Status, row.Kind = c.Status, c.Kind
	}
	return row, true, nil
}

// newest returns the latest revision of an id.
func (d *Dispatcher) newest(ctx context.Context, id envelope.ID) (task.Task, error) {
	all, err := d.revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	return all[len(all)-1], nil
}

// revisions returns those of an id, the latest last. There is one at least, or the
// error wraps ledger.ErrUnknown.
func (d *Dispatcher) revisions(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	all, err := d.Ledger.Revisions(ctx, id)
	if err == nil && len(all) == 0 {
		err = ledger.ErrUnknown
	}
	return all, err
}

// whenReady waits until Serve has recovered what was left over.
func (d *Dispatcher) whenReady(ctx context.Context) error {
	select {
	case <-d.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func with(data map[string]any, key string, value any) map[string]any {
	data[key] = value
	return data
}
