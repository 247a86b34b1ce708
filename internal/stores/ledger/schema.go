package ledger

import (
	"context"
	"database/sql"
	"embed"
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

//go:embed schema/*.sql
var schemas embed.FS

// SchemaVersion is the version of the schema. Its files bring a ledger forward, one version each: the
// first makes version 1 of nothing. One that was released is never changed.
const SchemaVersion = 21

// newer is the error for a ledger with a version of the schema above SchemaVersion.
func newer(version int) error {
	return fmt.Errorf("%w: its schema version is %d, and this mailboxd knows versions up to %d; install the newer mailboxd again",
		ErrNewer, version, SchemaVersion)
}

// withRedo are the versions that had a redo log.
const firstWithRedo, lastWithRedo = 6, 13

// bringForward brings a ledger to the newest version of the schema, whole or not at all.
func bringForward(ctx context.Context, conn *sql.Conn, path string) error {
	version, err := schemaVersion(ctx, conn)
	if err != nil {
		return err
	}
	if version < SchemaVersion {
		if _, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err == nil {
			err = migrate(ctx, conn, path, version)
		}
		if err == nil {
			_, err = conn.ExecContext(ctx, "COMMIT")
		}
	}
	if err != nil {
		return fmt.Errorf("bring schema forward: %w", err) // the connection is closed, and the transaction with it
	}
	return removeRedo(path)
}

// migrate runs the steps that a ledger has not seen, in the transaction that is open.
func migrate(ctx context.Context, conn *sql.Conn, path string, version int) error {
	for step := version + 1; step <= SchemaVersion; step++ {
		if step == lastWithRedo+1 && version >= firstWithRedo && version <= lastWithRedo {
			if err := importRedo(ctx, conn, path); err != nil {
				return fmt.Errorf("import redo log: %w", err)
			}
			if version < lastWithRedo { // for the events of the redo log
				if err := runStep(ctx, conn, lastWithRedo); err != nil {
					return err
				}
			}
		}
		if err := runStep(ctx, conn, step); err != nil {
			return err
		}
	}
	return nil
}

func runStep(ctx context.Context, conn *sql.Conn, step int) error {
	text, err := schemas.ReadFile(fmt.Sprintf("schema/%d.sql", step))
	if err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("%s\nPRAGMA user_version = %d", text, step))
	}
	if err != nil {
		return fmt.Errorf("bring schema to version %d: %w", step, err)
	}
	return nil
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

// writeURI names the file for the one connection that writes. FULL makes a commit durable when it
// returns. The size of a page is that of a new file, an old one keeps its own, and counts only before the
// journal's mode. A checkpointer makes the checkpoints.
func writeURI(path string) string {
	return uri(path, url.Values{
		"_txlock":       {"immediate"},
		"_journal_mode": {"WAL"}, // after the others
		"_pragma": {
			"busy_timeout(5000)", "page_size(4096)", "synchronous(FULL)", "wal_autocheckpoint(0)", "cache_size(-16000)", "temp_store(MEMORY)",
		},
	})
}

// checkpointURI names it for a connection that makes checkpoints, and waits for no lock.
func checkpointURI(path string) string {
	return uri(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "synchronous(FULL)", "wal_autocheckpoint(0)"}})
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

// isUnwritable reports whether the disk of a ledger is read-only, or its directory is for this user.
func isUnwritable(path string) bool {
	err := unix.Access(filepath.Dir(path), unix.W_OK)
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES)
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
