package dispatch

import (
	"context"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
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
	waits, err := d.decideIfCurrent(ctx, loads(row.Seq, false, false), &core.WaitForBudget{Task: row.Seq, Attempt: row.Attempt, Why: short.reason})
	if waits && !d.waits.join(row.Seq, short, since) {
		d.timers.After(row.Seq, 0)
	}
	return err
}

// midnight is when the budgets of the day begin anew.
func midnight(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
