package ledger

import "strings"

// rows are what a group adds and nobody has asked for yet. Before a statement
// that may ask they are written, so nobody can tell that they waited. Many
// in one statement cost half: a task, its request and its event took 41 µs one by
// one, with the look for an earlier revision, and take 23 µs.
type rows struct {
	by *statements

	tasks, requests, events, runs, results, settled batch

	lastTask int64 // the highest Seq that was given; 0: to be looked up
	failed   error // what kept some from being written: nothing of the transaction may be kept
}

func newRows(by *statements) *rows {
	return &rows{
		by: by,
		tasks: newInsert("tasks (seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, "+
			"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth)", 26),
		requests: newInsert("requests (task, body)", 2),
		events:   newInsert("events (time, kind, data, task)", 4),
		runs: newInsert("runs (task, attempt, run_id, intent, boot, terms, reserved_tokens, reserved_cents, lender, lender_attempt, "+
			"pid, pid_start, exit_code, signal, cause)", 15),
		results: newInsert("results (task, body)", 2),
		settled: newBatch("UPDATE OR FAIL tasks SET put = 1, delivered = 1 WHERE seq IN (", 1, ")"),
	}
}

// all returns the batches in the order in which they are written.
func (r *rows) all() []*batch {
	return []*batch{&r.tasks, &r.requests, &r.events, &r.runs, &r.results, &r.settled}
}

// add has a row wait, and writes those of its batch when there are enough.
func (r *rows) add(b *batch, values ...any) error {
	b.waiting = append(b.waiting, values...)
	if r.failed == nil && len(b.waiting) >= steps[0]*b.width {
		r.failed = b.write(r.by)
	}
	return r.failed
}

// write writes all that waits.
func (r *rows) write() error { return r.flush(r.all()...) }

// flush writes what waits in some batches.
func (r *rows) flush(some ...*batch) error {
	for _, b := range some {
		if r.failed == nil && len(b.waiting) > 0 {
			r.failed = b.write(r.by)
		}
	}
	return r.failed
}

// forget is for a transaction that is not kept.
func (r *rows) forget() {
	for _, b := range r.all() {
		b.waiting = nil
	}
	r.lastTask, r.failed = 0, nil
}

// A batch is what one kind of statement does to some rows, in their order.
type batch struct {
	head, tail string // of the statement, around the rows
	width      int    // values of a row
	waiting    []any  // row after row
	texts      map[int]string
}

// steps are how many rows, or other things, one statement is about, so that a
// few prepared ones do for any number.
var steps = [...]int{64, 8, 1}

func newBatch(head string, width int, tail string) batch {
	return batch{head: head, tail: tail, width: width, texts: map[int]string{}}
}

// newInsert is a batch of new rows. OR FAIL leaves the rows before one that
// fails, and they go with the transaction; to take them back alone, SQLite would
// copy each page aside before it changes it, which is a quarter of the time.
func newInsert(into string, width int) batch {
	return newBatch("INSERT OR FAIL INTO "+into+" VALUES ", width, "")
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
