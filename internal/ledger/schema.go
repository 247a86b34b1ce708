package ledger

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// ErrNewer says that a newer mailboxd wrote the ledger. It was not touched;
// the remedy is to run that version again.
var ErrNewer = errors.New("was written by a newer mailboxd")

//go:embed schema/1.sql
var schema1 string

//go:embed schema/2.sql
var schema2 string

//go:embed schema/3.sql
var schema3 string

//go:embed schema/4.sql
var schema4 string

//go:embed schema/5.sql
var schema5 string

//go:embed schema/6.sql
var schema6 string

//go:embed schema/7.sql
var schema7 string

//go:embed schema/8.sql
var schema8 string

//go:embed schema/9.sql
var schema9 string

//go:embed schema/10.sql
var schema10 string

//go:embed schema/11.sql
var schema11 string

//go:embed schema/12.sql
var schema12 string

//go:embed schema/13.sql
var schema13 string

// migrations bring a ledger forward, one version each: the first makes
// version 1 of nothing. One that was released is never changed.
var migrations = []string{schema1, schema2, schema3, schema4, schema5, schema6, schema7, schema8, schema9, schema10, schema11, schema12, schema13}

// migrate runs the steps the file has not seen, all of them or none.
func migrate(ctx context.Context, conn *sql.Conn, steps []string) error {
	version, err := schemaVersion(ctx, conn)
	if err != nil {
		return err
	}
	if version >= len(steps) {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("bring schema forward: %w", err)
	}
	for at, step := range steps[version:] {
		step += fmt.Sprintf("\nPRAGMA user_version = %d", version+at+1)
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return errors.Join(fmt.Errorf("bring schema to version %d: %w", version+at+1, err), tx.Rollback())
		}
	}
	return tx.Commit()
}

// A querier is a *sql.DB or the one *sql.Conn that writes.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func schemaVersion(ctx context.Context, q querier) (version int, err error) {
	if err := q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// writeURI names the file for the one connection that writes. FULL makes a
// commit durable when it returns, not at the next checkpoint. The size of a page is
// that of a new file, an old one keeps its own, and counts only before the journal's
// mode. Lines of 1 KB leave a quarter of a page of 4 KB empty: with 8 KB the file is
// a tenth smaller, and bringing a line to the tables takes a sixth less processor time.
func writeURI(path string) string {
	return uri(path, url.Values{
		"_txlock":       {"immediate"},
		"_journal_mode": {"WAL"}, // after the others
		"_pragma":       {"busy_timeout(5000)", "page_size(8192)", "synchronous(FULL)", "wal_autocheckpoint(2000)", "cache_size(-8000)"},
	})
}

// readURI names the file for connections that only read. An unchanging file is read without
// the files that SQLite makes beside it otherwise.
func readURI(path string, unchanging bool) string {
	options := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	if unchanging {
		options.Set("immutable", "1")
	}
	return uri(path, options)
}

// isUnwritable reports whether nobody can write to the disk of a ledger.
func isUnwritable(path string) bool {
	return errors.Is(unix.Access(filepath.Dir(path), unix.W_OK), unix.EROFS)
}

// isWhole reports whether the file of a ledger has all of it.
func isWhole(path string) bool {
	log, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0
}

// uri spells a path so that SQLite finds no options of its own in it.
func uri(path string, options url.Values) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	return u.String()
}
