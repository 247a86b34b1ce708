package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"mailboxd/internal/stores/seal"
)

// Snapshot calls read with a reader of one moment: all that it reads fits together, whatever a daemon writes meanwhile.
func (r *Reader) Snapshot(ctx context.Context, read func(*Reader) error) (err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read one moment of the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	at := newStatements(tx.PrepareContext)
	defer func() { err = errors.Join(err, at.close()) }()
	return read(&Reader{db: r.db, read: at})
}

// A StoredEvent is an event as the ledger stores it, or what is left of one that retention removed.
type StoredEvent struct {
	seal.Event
	Of     int64 // the Seq of its task; 0 for none
	Hash   seal.Hash
	Pruned bool // only its seq and its hash are left
}

const storedQuery = `SELECT events.seq, events.time, events.kind, coalesce(k.id, ''), coalesce(k.revision, 0), events.data,
	coalesce(events.task, 0) FROM events LEFT JOIN tasks k ON k.seq = events.task WHERE events.seq BETWEEN ? AND ? ORDER BY events.seq`

func scanStored(r row) (e StoredEvent, err error) {
	err = r.Scan(&e.Seq, &e.Time, &e.Kind, &e.Task, &e.Revision, &e.Data, &e.Of)
	e.Hash = e.Event.Hash()
	return e, err
}

func scanPruned(r row) (e StoredEvent, err error) {
	err = r.Scan(&e.Seq, hashColumn{&e.Hash})
	e.Pruned = true
	return e, err
}

// StoredEvents returns the events from one seq to another one, and what is left of removed ones, in their order.
func (r *Reader) StoredEvents(ctx context.Context, first, last int64) ([]StoredEvent, error) {
	events, err := all(ctx, r.read, scanStored, storedQuery, first, last)
	if err != nil {
		return nil, fmt.Errorf("list events %d to %d: %w", first, last, err)
	}
	pruned, err := all(ctx, r.read, scanPruned, "SELECT seq, hash FROM pruned WHERE seq BETWEEN ? AND ?", first, last)
	if err != nil {
		return nil, fmt.Errorf("list removed events %d to %d: %w", first, last, err)
	}
	events = append(events, pruned...)
	slices.SortFunc(events, func(a, b StoredEvent) int { return int(a.Seq - b.Seq) })
	return events, nil
}
