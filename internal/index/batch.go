package index

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// batches write rows, each to its table.
type batches [tableCount]batch

func newBatches(tables *[tableCount]definition) (all batches) {
	for of := range all {
		all[of] = batch{definition: &tables[of], upserts: map[int]driver.Stmt{}}
	}
	return all
}

func (all *batches) write(conn *sql.Conn, changes []Change) error {
	for i := range all {
		all[i].waiting = all[i].waiting[:0]
	}
	return conn.Raw(func(raw any) error {
		conn := raw.(driver.Conn)
		for _, c := range changes {
			if err := all[c.of].add(conn, c); err != nil {
				return err
			}
		}
		for i := range all {
			if err := all[i].flush(conn); err != nil {
				return err
			}
		}
		return nil
	})
}

func (all *batches) close(conn *sql.Conn) error {
	return conn.Raw(func(any) (err error) {
		for i := range all {
			err = errors.Join(err, all[i].close())
		}
		return err
	})
}

// A batch writes rows of one table, many in one statement. It uses the driver's statements:
// database/sql copies each value twice.
type batch struct {
	*definition
	waiting []driver.NamedValue // row after row
	upserts map[int]driver.Stmt // by the number of rows
	gone    driver.Stmt
}

// steps are how many rows one statement writes, so that a few statements do for any number.
var steps = [...]int{64, 8, 1}

func (b *batch) add(conn driver.Conn, c Change) error {
	if c.gone() {
		if err := b.flush(conn); err != nil { // the row may be among those that wait
			return err
		}
		return run(conn, &b.gone, b.remove, named(nil, c.values))
	}
	b.waiting = named(b.waiting, c.values)
	if len(b.waiting) < steps[0]*len(b.columns) {
		return nil
	}
	return b.flush(conn)
}

// flush writes the rows that wait.
func (b *batch) flush(conn driver.Conn) error {
	width, left := len(b.columns), b.waiting
	for _, n := range steps {
		for ; len(left) >= n*width; left = left[n*width:] {
			stmt := b.upserts[n]
			if err := run(conn, &stmt, func() string { return b.upsert(n) }, left[:n*width]); err != nil {
				return err
			}
			b.upserts[n] = stmt
		}
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	return nil
}

func named(list []driver.NamedValue, values []value) []driver.NamedValue {
	for _, v := range values {
		list = append(list, driver.NamedValue{Value: v.boxed()})
	}
	return list
}

// run runs a statement, and prepares it the first time.
func run(conn driver.Conn, stmt *driver.Stmt, text func() string, values []driver.NamedValue) (err error) {
	if *stmt == nil {
		if *stmt, err = conn.Prepare(text()); err != nil {
			*stmt = nil // not a nil statement in an interface that isn't nil
			return err
		}
	}
	for i := range values {
		values[i].Ordinal = i + 1
	}
	_, err = (*stmt).(driver.StmtExecContext).ExecContext(context.Background(), values)
	return err
}

func (b *batch) close() (err error) {
	for _, stmt := range b.upserts {
		err = errors.Join(err, stmt.Close())
	}
	if b.gone != nil {
		err = errors.Join(err, b.gone.Close())
	}
	return err
}
