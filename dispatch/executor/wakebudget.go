package executor

import (
	"context"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// Tasks wait until runs release a part of a budget, the oldest first. When a run is settled, the
// first task that waits for one of its budgets is woken. When that one's run begins, or it goes
// elsewhere, the next one is woken. So no task polls, and only the first one may find too little.

// WakeAfterRun wakes the first task that waits for each of the budgets of a task's latest run. Where
// they are unknown, it is WakeForBudget.
func (p *Preparer) WakeAfterRun(ctx context.Context, row task.Task) error {
	waited, err := p.Ledger.BudgetsWaitedFor(ctx)
	if len(waited) == 0 || err != nil {
		return err // the usual case
	}
	keys, known, err := p.budgetsOf(ctx, row)
	if err != nil {
		return err
	}
	if !known {
		keys = waited // a task that waits for another one will wait again
	}
	return p.wakeFirst(ctx, keys)
}

// WakeForBudget wakes the first task that waits for each budget.
func (p *Preparer) WakeForBudget(ctx context.Context) error {
	keys, err := p.Ledger.BudgetsWaitedFor(ctx)
	if err != nil {
		return err
	}
	return p.wakeFirst(ctx, keys)
}

// wakeFirst wakes the first task that waits for each of some budgets, unless it was woken already, or
// an account still has too little. The task itself checks all its other limits.
func (p *Preparer) wakeFirst(ctx context.Context, keys []task.Key) error {
	for _, key := range keys {
		first, err := p.Ledger.Waiting(ctx, key, 1)
		if err != nil {
			return err
		}
		if len(first) == 0 || first[0].State != task.Held {
			continue
		}
		if owner, day, names := key.Account(); names {
			balance, err := p.Ledger.Balance(ctx, owner, day)
			if err != nil {
				return err
			}
			if core.StillShort(first[0].Wait, balance) {
				continue
			}
		}
		p.Timers.Now(first[0].Task)
	}
	return nil
}
