package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"

	"mailboxd/internal/stores/seal"
	"mailboxd/internal/testtools/fault"
)

// A writer has the only connection that writes rows. One goroutine uses it: that of its Ledger.
type writer struct {
	path      string
	db        *sql.DB
	conn      *sql.Conn
	write     *statements
	last      *os.File // the file -last
	committed lastCommit
	rows      rows // that the next transaction doesn't have to read
	seals     seal.Writer
	broken    bool // the last transaction failed, so the connection is opened anew before the next one
}

// openWriter opens the ledger at a path, brings its schema forward, and has the file
// -last beside it.
func openWriter(path string) (w *writer, err error) {
	w = &writer{path: path, rows: noRows()}
	if err = w.connect(); err != nil {
		return nil, err
	}
	if err = bringForward(background, w.conn, path); err == nil {
		err = w.begin()
	}
	if err != nil {
		return nil, errors.Join(err, w.disconnect())
	}
	return w, nil
}

func (w *writer) connect() error {
	db, err := sql.Open("sqlite", writeURI(w.path))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(background)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	w.db, w.conn, w.write = db, conn, newStatements(conn.PrepareContext)
	w.write.writes = true
	return nil
}

func (w *writer) disconnect() error {
	return errors.Join(w.write.close(), w.conn.Close(), w.db.Close())
}

// begin notes in the main file that a daemon writes, after the file -last is there.
func (w *writer) begin() error {
	has, err := readCommits(background, w.conn)
	if err != nil {
		return err
	}
	before, reading := readLast(w.path)
	w.committed = lastCommit{ledger: has.ledger, number: has.number}
	if reading == nil && before.ledger == has.ledger {
		w.committed.base = before.base
	}
	if w.last, err = openLast(w.path, w.committed); err != nil {
		return err
	}
	if err = w.setLive(true); err != nil {
		return errors.Join(err, w.last.Close())
	}
	return nil
}

// setLive notes in the tables whether a daemon writes.
func (w *writer) setLive(live bool) error {
	err := w.start()
	if err == nil {
		_, err = w.write.exec("UPDATE commits SET live = ?", live)
	}
	if err == nil {
		_, err = w.write.exec("DELETE FROM open_tasks WHERE tasks = 0")
	}
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.fail()
	}
	return err
}

// start begins a transaction.
func (w *writer) start() error {
	if w.broken {
		if err := w.reconnect(); err != nil {
			return err
		}
	}
	if len(w.rows.tasks)+len(w.rows.runs) > keptRows {
		w.rows = noRows()
	}
	w.write.clear()
	_, err := w.write.exec("BEGIN IMMEDIATE")
	w.write.wrote = false
	w.broken = err != nil && !isBusy(err)
	return err
}

func isBusy(err error) bool {
	coded, ok := errors.AsType[*sqlite.Error](err)
	return ok && coded.Code()&0xff == sqliteBusy
}

// commit makes the transaction durable. After an error, fail takes it back.
func (w *writer) commit() error {
	next := w.committed.number + 1
	if _, err := w.write.exec("UPDATE commits SET number = ?", int64(next)); err != nil {
		return err
	}
	err := fault.Read("write ledger")
	if err == nil {
		_, err = w.write.exec("COMMIT")
	}
	if err != nil {
		return err
	}
	fault.SyncedAt("committed", w.path+"-wal")
	w.committed.number = next
	w.note()
	return nil
}

// note writes the file -last. What is committed is durable without it.
func (w *writer) note() { _, _ = w.last.WriteAt(w.committed.encode(), 0) }

// logEmptied notes that the main file alone has all commits.
func (w *writer) logEmptied() {
	w.committed.base = w.committed.number
	w.note()
}

// rollback takes back what the transaction did. An error means that SQLite has done so already,
// or that the next BEGIN fails.
func (w *writer) rollback() {
	w.rows = noRows()
	w.write.clear()
	_, _ = w.write.exec("ROLLBACK")
}

// fail takes back a transaction that can't be written. The next one has another connection.
func (w *writer) fail() {
	w.rollback()
	w.broken = true
}

// reconnect opens a new connection after a transaction that failed: on the same descriptor, a
// sync after one that failed succeeds without the data. What the new connection reads is the state.
func (w *writer) reconnect() error {
	_ = w.disconnect() // nothing of it is used any more
	if err := w.connect(); err != nil {
		return err
	}
	has, err := readCommits(background, w.conn)
	switch {
	case err != nil:
		return err
	case has.ledger != w.committed.ledger || has.number < w.committed.number:
		return fmt.Errorf("%w: it has %d commits, and there were %d", errUnreadable, has.number, w.committed.number)
	}
	w.committed.number, w.broken, w.seals.Stale = has.number, false, true
	w.note()
	return nil
}

// close notes that no daemon writes any more, and leaves no log if no program reads.
func (w *writer) close() error {
	err := w.setLive(false)
	return errors.Join(err, w.disconnect(), w.last.Close())
}

// isOfOne reports whether an error is that of one function's row, and not of the disk or of
// the whole transaction.
func isOfOne(err error) bool {
	coded, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return true
	}
	return coded.Code()&0xff == sqliteConstraint || coded.Code()&0xff == sqliteMismatch
}

const (
	sqliteConstraint = 19
	sqliteMismatch   = 20
)
