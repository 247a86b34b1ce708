package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
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
// start makes of the seals and the prune records. It takes rows from the driver: package sql makes half of its time.
func (r *Reader) Audit(ctx context.Context, start func([]seal.Seal, []seal.Prune) *seal.Checker) (err error) {
	defer wrap(&err, "audit events")
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		_, ending := conn.ExecContext(background, "ROLLBACK")
		err = errors.Join(err, ending)
	}()
	read := newStatements(conn.PrepareContext)
	defer func() { err = errors.Join(err, read.close()) }()
	seals, err := all(ctx, read, scanSeal, sealsQuery+" ORDER BY first")
	if err != nil {
		return err
	}
	prunes, err := all(ctx, read, scanPrune, "SELECT seqs, head, time, key, signature FROM prunes ORDER BY number")
	if err != nil {
		return err
	}
	return conn.Raw(func(of any) error {
		c, ok := of.(driver.QueryerContext)
		if !ok {
			return errors.New("the driver has no queries")
		}
		return start(seals, prunes).AddAll(each(ctx, c, eventItem, hashedEvents+" ORDER BY events.seq"),
			each(ctx, c, prunedItem, "SELECT seq, hash FROM pruned ORDER BY seq"))
	})
}

// eventItem hashes the columns of hashedEvents.
func eventItem(v []driver.Value) (item seal.Item, ok bool) {
	seq, ok1 := v[0].(int64)
	time, ok2 := v[1].(int64)
	kind, ok3 := v[2].(string)
	id, ok4 := v[3].(string)
	revision, ok5 := v[4].(int64)
	data, ok6 := v[5].(string)
	e := seal.Event{Seq: seq, Time: time, Kind: kind, Task: id, Revision: revision, Data: []byte(data)}
	return seal.Item{Seq: seq, Hash: e.Hash()}, ok1 && ok2 && ok3 && ok4 && ok5 && ok6
}

func prunedItem(v []driver.Value) (item seal.Item, ok bool) {
	seq, ok := v[0].(int64)
	item = seal.Item{Seq: seq, Pruned: true}
	return item, ok && hashColumn{&item.Hash}.Scan(v[1]) == nil
}

// each runs a query and yields an item for each row, or an error and nothing more.
func each(ctx context.Context, c driver.QueryerContext, scan func([]driver.Value) (seal.Item, bool), query string) iter.Seq2[seal.Item, error] {
	return func(yield func(seal.Item, error) bool) {
		rows, err := c.QueryContext(ctx, query, nil)
		if err != nil {
			yield(seal.Item{}, err)
			return
		}
		defer func() { _ = rows.Close() }()
		values := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			item, ok := seal.Item{}, true
			if err = cmp.Or(ctx.Err(), rows.Next(values)); err == nil {
				item, ok = scan(values)
			}
			if !ok {
				err = errors.New("a row has a column of another type")
			}
			if errors.Is(err, io.EOF) || !yield(item, err) {
				return
			}
		}
	}
}
