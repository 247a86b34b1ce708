package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mailboxd/internal/journal"
)

// A Tail reads what is durable where the index does not have all of it: from the index and
// from rows in memory that take the place of those in the index.
//
// Its connection has a view in the place of each table. The view has the rows in memory only
// as long as the mark of the index is before the end of the tail, in the moment that a query
// sees. So a query sees the end of the tail, or a later mark: a row in memory is the last one
// of its key up to the end, and one that has no row in memory did not change behind the mark
// from which the tail was read, whatever the index has taken since. Therefore the mark is
// read before the tail, and an index that moves on meanwhile or later does no harm.
type Tail struct {
	*Reader
	batches batches
}

// tails define the tables of the rows in memory.
var tails = func() (list [tableCount]definition) {
	for of, d := range definitions {
		d.name = "tail_" + d.name
		d.columns = append(slices.Clone(d.columns), column{name: "gone", kind: number})
		list[of] = d
	}
	return list
}()

// newTail returns a tail without rows for the index at a path.
func newTail(path string) (*Tail, error) {
	db, err := openMemory(":memory:")
	if err != nil {
		return nil, err
	}
	t := &Tail{&Reader{db: db, read: newStatements(db.PrepareContext)}, newBatches(&tails)}
	script := "CREATE TABLE tail_end (n INTEGER); INSERT INTO tail_end VALUES (0);\n"
	for of := range definitions {
		script += tails[of].create() + definitions[of].view()
	}
	if _, err = db.Exec("ATTACH ? AS stored", storedURI(path)); err == nil {
		_, err = db.Exec(script)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return t, nil
}

// openMemory opens a database of one connection that nobody else sees: in memory, or without
// a name in a file without one, when it is large.
func openMemory(name string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(5000)&_pragma=temp_store(MEMORY)&_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-65536)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// create is the statement that makes a table of rows in memory.
func (d *definition) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (", d.name)
	keys := make([]string, d.keys)
	for i, c := range d.columns {
		fmt.Fprintf(&b, "%s %s, ", c.name, [...]string{number: "INTEGER", text: "TEXT", blob: "BLOB"}[c.kind])
		if i < d.keys {
			keys[i] = c.name
		}
	}
	fmt.Fprintf(&b, "PRIMARY KEY (%s));\n", strings.Join(keys, ", "))
	return b.String()
}

// view is the statement that makes the view in the place of a table.
func (d *definition) view() string {
	const counts = "(SELECT n FROM stored.mark) < (SELECT n FROM tail_end)"
	same := make([]string, d.keys)
	columns := make([]string, len(d.columns))
	for i, c := range d.columns {
		columns[i] = "t." + c.name
		if i < d.keys {
			same[i] = "s." + c.name + " = t." + c.name
		}
	}
	row := fmt.Sprintf("FROM stored.%s s WHERE %s", d.name, strings.Join(same, " AND "))
	for i, c := range d.columns {
		if c.place {
			columns[i] = fmt.Sprintf("CAST(coalesce(t.%s, (SELECT s.%s %s)) AS TEXT)", c.name, c.name, row) // the affinity of s, or SQLite would not merge the two
		}
	}
	return fmt.Sprintf("CREATE TEMP VIEW %s (%s) AS\nSELECT %s FROM stored.%s s WHERE NOT EXISTS (SELECT 1 FROM tail_%s t WHERE %s AND %s)\n"+
		"UNION ALL SELECT %s FROM tail_%s t WHERE t.gone = 0 AND %s;\n",
		d.name, d.names(""), d.names("s."), d.name, d.name, strings.Join(same, " AND "), counts, strings.Join(columns, ", "), d.name, counts)
}

// Put adds rows, or replaces all rows by them, and moves the end of the tail to a position. A
// zero one leaves the end.
func (t *Tail) Put(changes []Change, end journal.Position, all bool) error {
	conn, err := t.db.Conn(context.Background())
	if err != nil {
		return err
	}
	if err = t.put(conn, changes, end, all); err != nil {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK") // it may not have begun
		err = fmt.Errorf("keep rows in memory: %w", err)
	}
	return errors.Join(err, conn.Close())
}

func (t *Tail) put(conn *sql.Conn, changes []Change, end journal.Position, all bool) error {
	begin := "BEGIN;"
	for of := range tails {
		if all {
			begin += "DELETE FROM " + tails[of].name + ";"
		}
	}
	if _, err := conn.ExecContext(context.Background(), begin); err != nil {
		return err
	}
	rows := make([]Change, len(changes))
	for i, c := range changes {
		rows[i] = Change{c.of, make([]value, len(tails[c.of].columns))}
		copy(rows[i].values, c.values)
		rows[i].values[len(rows[i].values)-1] = truth(c.gone())
	}
	if err := t.batches.write(conn, rows); err != nil {
		return err
	}
	_, err := conn.ExecContext(context.Background(), "UPDATE tail_end SET n = max(n, ?); COMMIT", int64(end.N))
	return err
}

// finish ends Put.
func (t *Tail) finish() error {
	conn, err := t.db.Conn(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(t.batches.close(conn), conn.Close())
}

// Close closes the tail.
func (t *Tail) Close() error { return errors.Join(t.finish(), t.Reader.Close()) }
