package ledger

import "strings"

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
	tableCount
)

// A row is what a scan function reads its columns from, and a change what it is
// written from: values in the order of the statement's places.
type change struct {
	of     table
	values []any
}

// tables writes rows by the connection that writes.
type tables struct {
	by      *statements
	batches [tableCount]batch
}

func newTables(by *statements) *tables { return &tables{by: by, batches: newBatches()} }

func newBatches() [tableCount]batch {
	return [tableCount]batch{
		newTasks:    newInsert("tasks", taskColumns, ""),
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
	}
}

// widths are how many values a row of each table has.
var widths = func() (widths [tableCount]int) {
	for i, b := range newBatches() {
		widths[i] = b.width
	}
	return widths
}()

// write brings what layers have to the tables, the oldest layer first. It is
// part of a transaction that somebody else has begun.
func (w *tables) write(layers ...*layer) error {
	for _, c := range layers {
		err := c.each(func(r change) error { return w.add(r) })
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
	b := &w.batches[r.of]
	b.waiting = append(b.waiting, r.values...)
	if len(b.waiting) < b.most*b.width {
		return nil
	}
	return b.write(w.by)
}

// flush writes what waits.
func (w *tables) flush() error {
	for i := range w.batches {
		if err := w.batches[i].write(w.by); err != nil {
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

// A batch is what one kind of statement does to some rows, in their order. Many
// in one statement cost half: a task, its request and its event took 41 µs one by
// one, with the look for an earlier revision, and take 23 µs.
type batch struct {
	head, tail string // of the statement, around the rows
	width      int    // values of a row
	most       int    // rows of a statement
	waiting    []any  // row after row
	texts      map[int]string
}

// steps are how many rows, or other things, one statement is about, so that a
// few prepared ones do for any number.
var steps = [...]int{64, 8, 1}

// newInsert is a batch of new rows. OR FAIL leaves the rows before one that
// fails, and they go with the transaction; to take them back alone, SQLite would
// copy each page aside before it changes it, which is a quarter of the time.
func newInsert(into, columns, tail string) batch {
	return batch{
		head: "INSERT OR FAIL INTO " + into + " (" + columns + ") VALUES ", tail: tail,
		width: strings.Count(columns, ",") + 1, most: steps[0], texts: map[int]string{},
	}
}

// newUpdate is a batch of a statement that changes one row.
func newUpdate(text string) batch {
	return batch{width: strings.Count(text, "?"), most: 1, texts: map[int]string{1: text}}
}

// write does what waits, by statements that do not ask for what waits to be written.
func (b *batch) write(s *statements) error {
	left := b.waiting
	b.waiting = nil
	defer func() { clear(left[:cap(left)]); b.waiting = left[:0] }()
	at := 0
	for _, n := range steps {
		for ; len(left)-at >= n*b.width; at += n * b.width {
			if _, err := s.run(b.text(n), left[at:at+n*b.width]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is the statement for n rows.
func (b *batch) text(n int) string {
	if b.texts[n] == "" {
		row := "(" + strings.Repeat("?, ", b.width-1) + "?)"
		b.texts[n] = b.head + strings.Repeat(row+", ", n-1) + row + b.tail
	}
	return b.texts[n]
}
