package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// limited reports whether what a task spends may have to fit into something.
func limited(row task.Task, terms task.Terms) bool {
	return row.Parent != 0 || terms.Budget != (envelope.Budget{}) || len(terms.Accounts) > 0
}

// spending gathers what is spent and reserved before a run of a task begins.
func (x *executor) spending(tx *transaction, row task.Task, run task.Run) (s core.Spending, err error) {
	if !limited(row, run.Terms) {
		return s, nil // as most
	}
	if run.Terms.Budget != (envelope.Budget{}) {
		if s.Own, err = tx.Family(row.Seq); err != nil {
			return s, err
		}
	}
	if s.Above, err = x.ancestors(tx, row.Parent); err != nil {
		return s, err
	}
	s.Balances = map[core.LimitKey]task.Balance{}
	for _, a := range s.Accounts(run) {
		if s.Balances[core.KeyOf(a)], err = tx.Balance(a.Owner, a.Day); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ancestors gathers a task and those above it, up to one that lends.
func (x *executor) ancestors(tx *transaction, seq int64) (above []core.Ancestor, err error) {
	for seq != 0 {
		var a core.Ancestor
		var found bool
		if a.Task, found, err = tx.Task(seq); err != nil || !found {
			return above, err
		}
		if a.Run, _, err = tx.LastRun(seq); err != nil {
			return above, err
		}
		if a.Tree, err = tx.Family(seq); err != nil {
			return above, err
		}
		a.Said, seq = x.meters.spentBy(seq), a.Task.Parent
		if above = append(above, a); a.Lends() {
			break
		}
	}
	return above, nil
}

// spentBy is what the run of a task has said so far that it spent.
func (mt *meters) spentBy(seq int64) (most envelope.Cost) {
	for _, r := range mt.runs.of(seq) {
		most = r.meter.seen()
	}
	return most
}

// settled wakes the tasks that wait for what a run of a task gives back, which is over.
func (d *Dispatcher) settled(ctx context.Context, row task.Task) {
	if d.agents.Forget != nil {
		d.agents.Forget(d.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	if !d.executor.waits.settle() {
		return
	}
	keys, err := d.executor.limitsOf(ctx, row)
	if err != nil {
		keys = d.executor.waits.limits() // a task that waits for another limit waits again
		if ctx.Err() == nil {
			d.faults.report(judging, row, err)
		}
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			d.executor.waits.wakeNext(ctx, key)
		}
	}
}

// limitsOf returns the limits that the runs of a task have to fit into.
func (x *executor) limitsOf(ctx context.Context, row task.Task) ([]core.LimitKey, error) {
	keys := []core.LimitKey{{Task: row.Seq}}
	runs, err := x.Ledger.Runs(ctx, row.Seq)
	for _, run := range runs {
		for _, a := range run.Terms.Accounts {
			keys = append(keys, core.KeyOf(a))
		}
	}
	for seq := row.Parent; seq != 0 && err == nil; {
		keys = append(keys, core.LimitKey{Task: seq})
		var parent task.Task
		parent, err = x.Ledger.Task(ctx, seq)
		seq = parent.Parent
	}
	return keys, err
}

// lookedAt is for a task that was looked at, perhaps because it was woken. The next step
// of one that is queued is known when its turn comes.
func (d *Dispatcher) lookedAt(ctx context.Context, seq int64) {
	if !d.executor.waits.isWoken(seq) {
		return
	}
	if row, err := d.Ledger.Task(ctx, seq); err == nil && row.State != task.Queued {
		d.executor.waits.proceeded(ctx, seq)
	}
}

// midnight is when the budgets of the day begin anew.
func midnight(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
