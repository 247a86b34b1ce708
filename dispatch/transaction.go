package dispatch

import (
	"context"

	"mailboxd/internal/ledger"
)

// A transaction is one change of the ledger.
type transaction struct {
	*ledger.Tx
}

// update runs fn in a transaction, as [ledger.Ledger.Update] does. It returns when the
// changes are durable.
func (d *Dispatcher) update(ctx context.Context, fn func(tx *transaction) error) error {
	return d.Ledger.Update(ctx, func(tx *ledger.Tx) error { return fn(&transaction{Tx: tx}) })
}
