package ledger

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
)

// A table is a kind of row that a layer brings to the tables, by the statement
// that does so. The redo log spells it, so its number never changes.
type table byte

const (
	newTasks table = iota
	newRequests
	newResults
	newRuns
	newEvents
	changedTasks
	changedRuns
	readFiles
	newDeadLetters
	newPriorities
	tableCount
)

// A change is what a row is written from: values in the order of the statement's
// places. They are the reader's only until the next one.
type change struct {
	of     table
	values []value
}

// tables writes rows by the connection that writes. It uses the driver's own
// statements: database/sql copies each value twice on its way there, which was a
// third of the bytes that a task allocated.
type tables struct {
	conn    *sql.Conn
	batches [batchCount]batch
	row     []value // room for one
}

// newArrivals are the rows of new tasks that are written in another way. The redo
// log has no word for them.
const (
	newArrivals = tableCount + iota
	batchCount
)

func newTables(conn *sql.Conn) *tables {
	return &tables{conn: conn, batches: newBatches(), row: make([]value, 0, mostValues)}
}

func newBatches() [batchCount]batch {
	return [batchCount]batch{
		newTasks:    newInsert("tasks", plainColumns, ""),
		newArrivals: newInsertOf("tasks", plainColumns, arrivalRow(), ""),
		newRequests: newInsert("requests", "task, body", ""),
		newResults:  newInsert("results", "task, body", " ON CONFLICT (task) DO UPDATE SET body = excluded.body"),
		newRuns:     newInsert("runs", runColumns, ""),
		newEvents:   newInsert("events", "time, kind, data, task", ""),
		changedTasks: newUpdate("UPDATE tasks SET state = ?, attempt = ?, reasons = ?, until = ?, agent = ?, status = ?, kind = ?, " +
			"finished = ?, result_sum = ?, put = ?, delivered = ?, replaces = ? WHERE seq = ?"),
		changedRuns: newUpdate("UPDATE runs SET pid = ?, pid_start = ?, boot = ?, started = ?, finished = ?, exit_code = ?, signal = ?, cause = ?, " +
			"settled = ? WHERE task = ? AND attempt = ?"),
		readFiles: newInsert("files", fileColumns, " ON CONFLICT (path) DO UPDATE SET dev = excluded.dev, inode = excluded.inode, "+
			"offset = excluded.offset, replay = excluded.replay, head = excluded.head, tail = excluded.tail"),
		newDeadLetters: newInsert("dead_letters", "line", ""),
		newPriorities:  newInsert("tasks", taskColumns, ""), // new tasks with a priority
	}
}

// widths are how many values a row of each table has.
var widths = func() (widths [tableCount]int) {
	batches := newBatches()
	for i := range widths {
		widths[i] = batches[i].width
	}
	return widths
}()

// write brings what layers have to the tables, of which the latest is the first. It
// is part of a transaction that somebody else has begun.
func (w *tables) write(layers ...*memtable) error {
	for _, c := range slices.Backward(layers) {
		err := c.each(w.row, w.add)
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			w.forget()
			return err
		}
	}
	return nil
}

// add has a row wait, and writes those of its table when there are enough.
func (w *tables) add(r change) error {
	if r.of == newTasks {
		if own, ok := asArrival(r.values); ok {
			r = change{newArrivals, own}
		}
	}
	b := &w.batches[r.of]
	b.add(r.values)
	if len(b.waiting) < b.most*b.width {
		return nil
	}
	return b.write(w.conn)
}

// flush writes what waits.
func (w *tables) flush() error {
	for i := range w.batches {
		if err := w.batches[i].write(w.conn); err != nil {
			return err
		}
	}
	return nil
}

// forget is for a transaction that is not kept.
func (w *tables) forget() {
	for i := range w.batches {
		w.batches[i].waiting = nil
	}
}

// A batch is what one kind of statement does to some rows, in their order. Many in
// one statement take a third less: a task, its request and its event took 15 µs one by
// one, and take 10 µs (BenchmarkFold).
type batch struct {
	head, tail string              // of the statement, around the rows
	row        string              // how it has one of them
	width      int                 // values of a row
	most       int                 // rows of a statement
	waiting    []driver.NamedValue // row after row
	ready      map[int]driver.Stmt // for so many rows
}

// steps are how many rows, or other things, one statement is about, so that a
// few prepared ones do for any number.
var steps = [...]int{64, 8, 1}

// newInsert is a batch of new rows. OR FAIL leaves the rows before one that
// fails, and they go with the transaction; to take them back alone, SQLite would
// copy each page aside before it changes it, which is a quarter of the time.
func newInsert(into, columns, tail string) batch {
	width := strings.Count(columns, ",") + 1
	return newInsertOf(into, columns, "("+strings.Repeat("?, ", width-1)+"?)", tail)
}

// newInsertOf is newInsert with some values in the statement.
func newInsertOf(into, columns, row, tail string) batch {
	return batch{
		head: "INSERT OR FAIL INTO " + into + " (" + columns + ") VALUES ", row: row, tail: tail,
		width: strings.Count(row, "?"), most: steps[0], ready: map[int]driver.Stmt{},
	}
}

// newUpdate is a batch of a statement that changes one row.
func newUpdate(text string) batch {
	return batch{head: text, width: strings.Count(text, "?"), most: 1, ready: map[int]driver.Stmt{}}
}

// add has a row wait. A text that the row before it has too is taken from there:
// most rows of a layer have the same ones, and each text that goes to the driver
// is an allocation.
func (b *batch) add(values []value) {
	before := b.waiting[max(0, len(b.waiting)-b.width):]
	for i, v := range values {
		var boxed driver.Value
		if len(before) > 0 {
			boxed = before[i].Value
		}
		if said, ok := boxed.(string); !ok || !v.says(said) {
			boxed = v.boxed()
		}
		b.waiting = append(b.waiting, driver.NamedValue{Value: boxed})
	}
}

// write does what waits.
func (b *batch) write(conn *sql.Conn) error {
	if len(b.waiting) == 0 {
		return nil
	}
	left := b.waiting
	b.waiting = nil
	defer func() { clear(left); b.waiting = left[:0] }()
	at := 0
	return conn.Raw(func(raw any) error {
		for _, n := range steps {
			for ; n <= b.most && len(left)-at >= n*b.width; at += n * b.width {
				if err := b.exec(raw, n, left[at:at+n*b.width]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// exec runs the statement for n rows.
func (b *batch) exec(raw any, n int, values []driver.NamedValue) error {
	if b.ready[n] == nil {
		stmt, err := raw.(driver.Conn).Prepare(b.text(n))
		if err != nil {
			return err // and no statement, in a driver.Stmt that is not nil
		}
		b.ready[n] = stmt
	}
	for i := range values {
		values[i].Ordinal = i + 1
	}
	_, err := b.ready[n].(driver.StmtExecContext).ExecContext(background, values)
	return err
}

// text is the statement for n rows.
func (b *batch) text(n int) string {
	if b.most == 1 {
		return b.head
	}
	return b.head + strings.Repeat(b.row+", ", n-1) + b.row + b.tail
}

// close lets go of the statements.
func (w *tables) close() error {
	return w.conn.Raw(func(any) (err error) {
		for i := range w.batches {
			for _, stmt := range w.batches[i].ready {
				err = errors.Join(err, stmt.Close())
			}
			clear(w.batches[i].ready)
		}
		return err
	})
}
