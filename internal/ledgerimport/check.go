package ledgerimport

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// smallLedger is the size up to which Check reads every page.
const smallLedger = 4 << 20

// Check looks at a ledger without changing it. Its error wraps fs.ErrNotExist, ErrNewer or
// ErrUnreadable, or is one of the disk.
func Check(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, end := range Ends[1:] {
			if left, missing := os.Lstat(path + end); missing == nil && end != "-shm" && (end == "-wal" || left.Size() > 0) {
				return fmt.Errorf("%w: its %s is there without it", ErrUnreadable, filepath.Base(path)+end)
			}
		}
		return err
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrUnreadable)
	case info.Size() == 0:
		return fmt.Errorf("%w: it is empty", ErrUnreadable)
	}
	db, err := sql.Open("sqlite", uri(path, "ro"))
	if err != nil {
		return err
	}
	return errors.Join(unreadable(check(db, path, info.Size() <= smallLedger)), db.Close())
}

func check(db *sql.DB, path string, everything bool) error {
	version, err := schemaVersion(db)
	switch {
	case err != nil:
		return err
	case version > Version:
		return ErrNewer
	case version == 0:
		return fmt.Errorf("%w: it has no schema version", ErrUnreadable)
	}
	for table, since := range tables { // a table that is not there is an error
		if version >= since {
			if _, err := db.Exec("SELECT * FROM " + table + " LIMIT 1"); err != nil {
				return err
			}
		}
	}
	if everything {
		verdict := ""
		if err := db.QueryRow("PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return fmt.Errorf("%w: %s", ErrUnreadable, strings.ReplaceAll(verdict, "\n", " "))
		}
	}
	if version < 6 {
		return nil // it has no redo log
	}
	live := "live"
	if version < 8 {
		live = "0"
	}
	have, err := readExtent(db.QueryRowContext(context.Background(), "SELECT applied, "+live+" FROM redo"))
	if err != nil {
		return err
	}
	frames, err := readFrames(path, have)
	for _, rows := range frames {
		err = errors.Join(err, eachRow(rows, func(table, []any) error { return nil }))
	}
	return err
}

// tables are the tables with the version that brought each.
var tables = map[string]int{
	"tasks": 1, "requests": 1, "results": 1, "runs": 1, "events": 1, "files": 1, "talks": 5, "messages": 5, "speakers": 5,
}

// The result codes by which SQLite says that the bytes are wrong: a table or column that is
// not there, a malformed page, no database at all.
const (
	sqliteError   = 1
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// unreadable marks the errors that say that the bytes are wrong.
func unreadable(err error) error {
	coded, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch coded.Code() & 0xff { // the primary code
	case sqliteError, sqliteCorrupt, sqliteNotADB:
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}
