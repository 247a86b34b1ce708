package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"mailboxd/internal/stores/seal"
)

const (
	sealsQuery   = "SELECT first, last, previous, hash, time, key, signature FROM seals"
	hashedEvents = `SELECT events.seq, events.time, events.kind, coalesce(k.id, ''), coalesce(k.revision, 0), events.data
		FROM events LEFT JOIN tasks k ON k.seq = events.task`
)

func scanSeal(r row) (s seal.Seal, err error) {
	err = r.Scan(&s.First, &s.Last, hashColumn{&s.Previous}, hashColumn{&s.Hash}, &s.Time, &s.Key, &s.Signature)
	return s, err
}

func scanPrune(r row) (p seal.Prune, err error) {
	var seqs []byte
	if err = r.Scan(&seqs, hashColumn{&p.Head}, &p.Time, &p.Key, &p.Signature); err == nil {
		err = p.Seqs.UnmarshalText(seqs)
	}
	return p, err
}

// scanItem hashes an event.
func scanItem(r row) (seal.Item, error) {
	var e seal.Event
	var kind, id, data sql.RawBytes
	err := r.Scan(&e.Seq, &e.Time, &kind, &id, &e.Revision, &data)
	e.Kind, e.Task, e.Data = string(kind), string(id), data
	return seal.Item{Seq: e.Seq, Hash: e.Hash()}, err
}

// hashColumn scans a hash.
type hashColumn struct{ to *seal.Hash }

// Scan takes a blob.
func (c hashColumn) Scan(value any) error {
	bytes, ok := value.([]byte)
	if !ok || len(bytes) != len(c.to) {
		return errors.New("is no hash")
	}
	copy(c.to[:], bytes)
	return nil
}

// SealsSince returns the seals after a time in microseconds, the first one first.
func (r *Reader) SealsSince(ctx context.Context, time int64) ([]seal.Seal, error) {
	seals, err := all(ctx, r.read, scanSeal, sealsQuery+" WHERE time > ? ORDER BY first", time)
	if err != nil {
		return nil, fmt.Errorf("list seals: %w", err)
	}
	return seals, nil
}

// Audit reads all events of one moment in the order of their seqs, and what is left of removed ones, for a checker that
// start makes of the seals and the prune records.
func (r *Reader) Audit(ctx context.Context, start func([]seal.Seal, []seal.Prune) *seal.Checker) (err error) {
	defer wrap(&err, "audit events")
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	read := newStatements(tx.PrepareContext)
	defer func() { err = errors.Join(err, read.close()) }()
	seals, err := all(ctx, read, scanSeal, sealsQuery+" ORDER BY first")
	if err != nil {
		return err
	}
	prunes, err := all(ctx, read, scanPrune, "SELECT seqs, head, time, key, signature FROM prunes ORDER BY number")
	if err != nil {
		return err
	}
	pruned := each(ctx, tx, func(r row) (seal.Item, error) {
		left := seal.Item{Pruned: true}
		return left, r.Scan(&left.Seq, hashColumn{&left.Hash})
	}, "SELECT seq, hash FROM pruned ORDER BY seq")
	return start(seals, prunes).AddAll(each(ctx, tx, scanItem, hashedEvents+" ORDER BY events.seq"), pruned)
}

// each runs a query and yields what scan makes of each row, or an error and nothing more.
func each[T any](ctx context.Context, tx *sql.Tx, scan func(row) (T, error), query string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var item T
		rows, err := tx.QueryContext(ctx, query)
		if err != nil {
			yield(item, err)
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if item, err = scan(rows); !yield(item, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(item, err)
		}
	}
}
