package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const balanceColumns = "owner, day, limit_tokens, limit_cents, reserved_tokens, reserved_cents, spent_tokens, spent_cents, unknown"

func scanBalance(r row) (b task.Balance, err error) {
	err = r.Scan(&b.Owner, &b.Day, &b.Limit.Tokens, &b.Limit.USDCents,
		&b.Reserved.Tokens, &b.Reserved.USDCents, &b.Spent.Tokens, &b.Spent.USDCents, &b.Unknown)
	return b, err
}

const balanceQuery = "SELECT " + balanceColumns + " FROM accounts WHERE owner = ? AND day = ?"

// Balance returns the balance of an account on a day; it is zero if nothing was reserved or spent yet.
func (tx *Tx) Balance(owner, day string) (task.Balance, error) {
	return balance(context.Background(), tx.write, owner, day)
}

// Balance returns the balance of an account on a day; it is zero if nothing was reserved or spent yet.
func (r *Reader) Balance(ctx context.Context, owner, day string) (task.Balance, error) {
	return balance(ctx, r.read, owner, day)
}

func balance(ctx context.Context, s *statements, owner, day string) (task.Balance, error) {
	b, _, err := first(ctx, s, scanBalance, balanceQuery, owner, day)
	if err != nil {
		return task.Balance{}, fmt.Errorf("read account %s of %s: %w", owner, day, err)
	}
	b.Owner, b.Day = owner, day
	return b, nil
}

// Balances returns the accounts of a day of which something was reserved or
// spent, in order of their owners.
func (r *Reader) Balances(ctx context.Context, day string) ([]task.Balance, error) {
	list, err := all(ctx, r.read, scanBalance, "SELECT "+balanceColumns+" FROM accounts WHERE day = ? ORDER BY owner", day)
	if err != nil {
		return nil, fmt.Errorf("list accounts of %s: %w", day, err)
	}
	return list, nil
}

// Reserved returns what a run may spend now: less while runs that it asked for have
// a part of it. A run that is not known has no limit.
func (r *Reader) Reserved(ctx context.Context, name task.RunName) (envelope.Budget, error) {
	b, _, err := first(ctx, r.read, scanBudget, "SELECT reserved_tokens, reserved_cents FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
	if err != nil {
		return envelope.Budget{}, fmt.Errorf("read reservation of run %d of task %d: %w", name.Attempt, name.Task, err)
	}
	return b, nil
}

func scanBudget(r row) (b envelope.Budget, err error) {
	err = r.Scan(&b.Tokens, &b.USDCents)
	return b, err
}

// TreeCost adds up what a task and those it asked for have spent (AINL-46).
func (tx *Tx) TreeCost(seq int64) (task.TreeCost, error) {
	f, _, err := first(context.Background(), tx.write, scanFamily,
		`WITH RECURSIVE tree (seq) AS (SELECT ? UNION SELECT t.seq FROM tasks t JOIN tree f ON t.parent = f.seq WHERE t.parent <> 0)
		SELECT coalesce(sum(settled * coalesce(tokens, reserved_tokens, 0)), 0), coalesce(sum(settled * coalesce(usd_cents, reserved_cents, 0)), 0),
			coalesce(sum((1 - settled) * coalesce(reserved_tokens, 0)), 0), coalesce(sum((1 - settled) * coalesce(reserved_cents, 0)), 0)
		FROM tree JOIN runs ON runs.task = tree.seq`, seq)
	if err != nil {
		return task.TreeCost{}, fmt.Errorf("add up the spending of task %d: %w", seq, err)
	}
	return f, nil
}

func scanFamily(r row) (f task.TreeCost, err error) {
	err = r.Scan(&f.Spent.Tokens, &f.Spent.USDCents, &f.Reserved.Tokens, &f.Reserved.USDCents)
	return f, err
}
