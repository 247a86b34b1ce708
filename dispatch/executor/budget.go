package executor

import (
	"context"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// limited reports whether a limit may apply to what a task spends.
func limited(row task.Task, terms task.Terms) bool {
	return row.Parent != 0 || terms.Budget != (envelope.Budget{}) || len(terms.Accounts) > 0
}

// spending gathers what is spent and reserved before a run of a task begins.
func (p *Preparer) spending(tx *store.Transaction, row task.Task, run task.Run) (s core.Spending, err error) {
	if !limited(row, run.Terms) {
		return s, nil // the usual case
	}
	if run.Terms.Budget != (envelope.Budget{}) {
		if s.Own, err = tx.TreeCost(row.Seq); err != nil {
			return s, err
		}
	}
	if s.Ancestors, err = p.ancestors(tx, row.Parent); err != nil {
		return s, err
	}
	s.Balances = map[task.Key]task.Balance{}
	for _, a := range s.Accounts(run) {
		if s.Balances[a.Key()], err = tx.Balance(a.Owner, a.Day); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ancestors returns a task and its ancestors, up to the first one that lends.
func (p *Preparer) ancestors(tx *store.Transaction, seq int64) (list []core.Ancestor, err error) {
	for seq != 0 {
		var a core.Ancestor
		var found bool
		if a.Task, found, err = tx.Task(seq); err != nil || !found {
			return list, err
		}
		if a.Run, _, err = tx.LastRun(seq); err != nil {
			return list, err
		}
		if a.Tree, err = tx.TreeCost(seq); err != nil {
			return list, err
		}
		a.Reported, seq = p.Meters.SpentBy(seq), a.Task.Parent
		if list = append(list, a); a.Lends() {
			break
		}
	}
	return list, nil
}

// budgetsOf returns the keys of the budgets that apply to the runs of a task. When the last run was
// taken back, its terms are gone, so they are unknown.
func (p *Preparer) budgetsOf(ctx context.Context, row task.Task) (keys []task.Key, known bool, err error) {
	runs, err := p.Ledger.Runs(ctx, row.Seq)
	if err != nil || !slices.ContainsFunc(runs, func(r task.Run) bool { return r.Attempt == row.Attempt }) {
		return nil, false, err
	}
	keys = []task.Key{task.BudgetKey(row.Seq)}
	for _, run := range runs {
		for _, a := range run.Terms.Accounts {
			if key := a.Key(); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	for seq := row.Parent; seq != 0 && err == nil; {
		keys = append(keys, task.BudgetKey(seq))
		var parent task.Task
		parent, err = p.Ledger.Task(ctx, seq)
		seq = parent.Parent
	}
	return keys, true, err
}
