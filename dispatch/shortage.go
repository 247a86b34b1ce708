package dispatch

import (
	"context"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A shortage is why a run may not begin.
type shortage struct {
	purse  purse
	unit   unit
	need   *int64 // how much there must be; nil: something
	waits  bool   // what others leave of their reservations may be enough
	reason string
}

// doWithout has a task wait whose budget is reserved for others, or refuses it
// when it is spent (AINL-46).
func (d *Dispatcher) doWithout(ctx context.Context, row task.Task, j task.Job, short *shortage, since int) error {
	if j.Dir != "" {
		if err := d.State.RemoveRunDir(row.ID, row.Revision, j.Attempt); err != nil {
			return err
		}
	}
	if !short.waits {
		d.tellExcess(ctx, row, envelope.Enforce, short.reason)
		return d.apply(ctx, row, j.Task, task.Verdict{Findings: envelope.Findings{{Kind: envelope.BudgetExceeded, Field: "budget_limit", Message: short.reason}}, Terms: j.Terms})
	}
	next, moved := row, false
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		change := task.Change{To: task.Held, Reasons: []task.Reason{task.Capacity}, Until: row.Deadline}
		moved, err = tx.Move(row.Seq, task.Queued, row.Attempt, change)
		if err != nil || !moved {
			return err
		}
		next.State, next.Reasons, next.Until = change.To, change.Reasons, change.Until
		return tx.Log(event(row, task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "why": short.reason}))
	})
	if err != nil || !moved {
		return err
	}
	d.proceed(ctx, next)
	if !d.waits.join(row.Seq, short, since) {
		d.alarms.after(row.Seq, 0)
	}
	return nil
}

// midnight is when the budgets of the day begin anew.
func midnight(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
