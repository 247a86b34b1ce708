package ledger

import (
	"fmt"
	"strings"
)

// rows are what a transaction adds and nobody has asked for yet. They are
// written before any other statement, so nobody can tell that they waited. Many
// in one statement cost half: a task, its request and its event took 41 µs one by
// one, with the look for an earlier revision, and take 23 µs.
type rows struct {
	by *statements

	tasks, requests, events insert

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
	}
}

// add has a row wait, and writes those of its table when there are enough.
func (r *rows) add(in *insert, values ...any) error {
	in.waiting = append(in.waiting, values...)
	if r.failed == nil && len(in.waiting) >= steps[0]*in.width {
		r.failed = in.write(r.by)
	}
	return r.failed
}

// write inserts what waits.
func (r *rows) write() error {
	for _, in := range []*insert{&r.tasks, &r.requests, &r.events} {
		if r.failed == nil && len(in.waiting) > 0 {
			r.failed = in.write(r.by)
		}
	}
	return r.failed
}

// forget is for a transaction that is not kept.
func (r *rows) forget() {
	for _, in := range []*insert{&r.tasks, &r.requests, &r.events} {
		in.waiting = nil
	}
	r.lastTask, r.failed = 0, nil
}

// An insert is some rows of one table, in their order.
type insert struct {
	into    string
	width   int   // columns
	waiting []any // their values, row after row
	texts   map[int]string
}

// steps are how many rows, or other things, one statement is about, so that a
// few prepared ones do for any number.
var steps = [...]int{64, 8, 1}

func newInsert(into string, width int) insert {
	return insert{into: into, width: width, texts: map[int]string{}}
}

// write inserts what waits, by statements that first ask for what waits to be written.
func (in *insert) write(s *statements) error {
	left := in.waiting
	in.waiting = nil
	defer func() { clear(left[:cap(left)]); in.waiting = left[:0] }()
	at := 0
	for _, n := range steps {
		for ; len(left)-at >= n*in.width; at += n * in.width {
			if _, err := s.exec(background, in.text(n), left[at:at+n*in.width]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is the statement for n rows. OR FAIL leaves the rows before one that
// fails, and they go with the transaction; to take them back alone, SQLite would
// copy each page aside before it changes it, which is a quarter of the time.
func (in *insert) text(n int) string {
	if in.texts[n] == "" {
		row := "(" + strings.Repeat("?, ", in.width-1) + "?)"
		in.texts[n] = fmt.Sprintf("INSERT OR FAIL INTO %s VALUES %s%s", in.into, strings.Repeat(row+", ", n-1), row)
	}
	return in.texts[n]
}
