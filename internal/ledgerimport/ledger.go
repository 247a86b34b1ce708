// Package ledgerimport reads the ledger of earlier versions, which was SQLite behind a redo
// log, so that it can be imported into the journal. Those versions are not developed any
// further, and so this package is frozen: it is changed only for a bug. It writes nothing
// but what those versions would write at their start: the newest schema, and what the redo
// log has.
package ledgerimport

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"mailboxd/internal/journal"
)

var (
	// ErrNewer says that a newer mailboxd wrote the ledger.
	ErrNewer = journal.ErrNewer
	// ErrUnreadable says that a file is there and is no ledger, or a damaged one. Errors of
	// the disk or of permissions are others.
	ErrUnreadable = errors.New("is not a readable ledger")
)

// Version is the last version of the schema.
const Version = 8

// migrations has the steps that bring an older schema forward.
//
//go:embed schema/*.sql
var migrations embed.FS

// Ends are the ends of the names of a ledger's files: the one of SQLite, its write-ahead log
// and the index of that, and the two files of the redo log.
var Ends = []string{"", "-wal", "-shm", redoEnds[0], redoEnds[1]}

// A Ledger is an open ledger.
type Ledger struct {
	db *sql.DB
}

// Open opens the ledger at an absolute path, for which Check has returned nil. It leaves
// everything in the one file: what the other files have is not needed any more.
func Open(path string) (*Ledger, error) {
	db, err := sql.Open("sqlite", uri(path, "rw"))
	if err != nil {
		return nil, fmt.Errorf("open earlier ledger: %w", err)
	}
	if err = settle(db, path); err != nil {
		return nil, fmt.Errorf("open earlier ledger: %w", errors.Join(unreadable(err), db.Close()))
	}
	return &Ledger{db}, nil
}

// settle brings the schema forward, takes up the redo log and ends the write-ahead log.
func settle(db *sql.DB, path string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	err = migrate(tx)
	if err == nil {
		err = takeUp(tx, path)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	var mode string
	err = db.QueryRow("PRAGMA journal_mode = DELETE").Scan(&mode)
	if err == nil && mode != "delete" {
		err = errors.New("another process uses it")
	}
	if err != nil {
		return fmt.Errorf("end its write-ahead log: %w", err)
	}
	return nil
}

func migrate(tx *sql.Tx) error {
	version, err := schemaVersion(tx)
	for at := version + 1; at <= Version && err == nil; at++ {
		var step []byte
		if step, err = migrations.ReadFile(fmt.Sprintf("schema/%d.sql", at)); err == nil {
			_, err = tx.Exec(fmt.Sprintf("%s\nPRAGMA user_version = %d", step, at))
		}
	}
	return err
}

func schemaVersion(q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (version int, err error) {
	err = q.QueryRowContext(context.Background(), "PRAGMA user_version").Scan(&version)
	return version, err
}

// Close closes the ledger.
func (l *Ledger) Close() error { return l.db.Close() }

// uri spells a path so that SQLite finds no options of its own in it.
func uri(path, mode string) string {
	options := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "cache_size(-8000)"}}
	u := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	return u.String()
}
