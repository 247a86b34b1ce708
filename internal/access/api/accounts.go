package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func (b *Records) accounts(r *http.Request) (any, error) {
	day := r.URL.Query().Get("day")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return nil, bad("day: %w", err)
	}
	all, err := b.Balances(r.Context(), day)
	return client.Balances{Balances: all}, err
}

// Balances returns the budgets of a day with a reservation or a cost, in the order of their
// owners.
func (b *Records) Balances(ctx context.Context, day string) ([]client.Balance, error) {
	list, err := b.Ledger.Balances(ctx, day)
	all := make([]client.Balance, len(list))
	for i, one := range list {
		all[i] = client.Balance{
			Owner: one.Owner, Day: one.Day, Unknown: one.Unknown,
			Tokens:   amountOf(one.Limit.Tokens, one.Spent.Tokens, one.Reserved.Tokens),
			USDCents: amountOf(one.Limit.USDCents, one.Spent.USDCents, one.Reserved.USDCents),
		}
	}
	return all, err
}

func amountOf(limit *int64, spent, reserved int64) client.Amount {
	a := client.Amount{Limit: limit, Spent: spent, Reserved: reserved}
	if limit != nil {
		left := max(0, *limit-spent-reserved)
		a.Left = &left
	}
	return a
}

// lineage returns the parent of a task, and its children.
func (b *Records) lineage(ctx context.Context, row task.Task) (parent envelope.ID, children []envelope.ID, err error) {
	if row.Parent != 0 {
		above, err := b.Ledger.Task(ctx, row.Parent)
		if err != nil && !errors.Is(err, ledger.ErrUnknown) {
			return "", nil, err
		}
		parent = above.ID
	}
	children, err = b.Ledger.Children(ctx, row.Seq)
	return parent, children, err
}
