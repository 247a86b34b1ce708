package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
)

// errUnreadable marks a file that is there and is not a ledger, as opposed to
// one that the disk or its permissions keep mailboxd from reading.
var errUnreadable = errors.New("is not a readable ledger")

// smallLedger is the size up to which every page is checked at open. Beyond
// it that would take longer than a start may, so only what a start reads is.
const smallLedger = 4 << 20

// inspect looks at the file without being able to change it. Its error wraps
// fs.ErrNotExist, ErrNewer or errUnreadable, or is one of the disk.
func inspect(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, end := range []string{"-wal", lastEnd, redoEnds[0], redoEnds[1]} {
			if left, missing := os.Lstat(path + end); missing == nil && (end == "-wal" || left.Size() > 0) {
				return fmt.Errorf("%w: its %s is there without it", errUnreadable, filepath.Base(path)+end)
			}
		}
		return err
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", errUnreadable)
	case info.Size() == 0: // ours never is: create renames a whole one into place
		return fmt.Errorf("%w: it is empty", errUnreadable)
	}
	last, reading := readLast(path)
	db, err := sql.Open("sqlite", readURI(path, isWhole(path) && isUnwritable(path)))
	if err != nil {
		return err
	}
	err = check(db, path, info.Size() <= smallLedger)
	if err == nil {
		err = checkCommits(db, path, last, reading)
	}
	return errors.Join(unreadable(err), db.Close())
}

// checkCommits returns an error if commits are missing from a ledger. The file -last was read before;
// if a daemon has made both since, it is read again.
func checkCommits(db *sql.DB, path string, last lastCommit, reading error) error {
	version, err := schemaVersion(background, db)
	if err != nil {
		return err
	}
	var has commits // none: an older version
	if version > lastWithRedo {
		has, err = readCommits(background, db)
	}
	if err == nil && has.live && errors.Is(reading, fs.ErrNotExist) {
		last, reading = readLast(path)
		has, err = readCommits(background, db)
	}
	if err != nil {
		return err
	}
	if err = compare(last, reading, has, path); err != nil || reading != nil {
		return err
	}
	return checkBase(path, last)
}

// checkBase returns an error if the main file alone is older than when the log was last begun anew:
// then what the log has belongs to another one.
func checkBase(path string, last lastCommit) error {
	db, err := sql.Open("sqlite", readURI(path, true))
	if err != nil {
		return err
	}
	for range 3 { // a checkpoint may be writing to it
		alone, reading := readCommits(background, db)
		if reading != nil || alone.number >= last.base { // one that was cut short may have left pages that only the log repairs
			return db.Close()
		}
		err = fmt.Errorf("%w: it is older than its log: it has %d commits, and had %d", errUnreadable, alone.number, last.base)
	}
	return errors.Join(err, db.Close())
}

// check reads what a start reads, and every page when asked to.
func check(db *sql.DB, path string, everything bool) error {
	ctx := context.Background()
	version, err := schemaVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case version > SchemaVersion:
		return newer(version)
	case version == 0:
		return fmt.Errorf("%w: it has no schema version", errUnreadable)
	}
	if everything {
		var verdict string
		if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return fmt.Errorf("%w: %s", errUnreadable, strings.ReplaceAll(verdict, "\n", " "))
		}
	}
	if err := checkStart(ctx, db, version); err != nil || version < firstWithRedo || version > lastWithRedo {
		return err
	}
	have, err := readExtent(ctx, db, version)
	if err != nil {
		return err
	}
	frames, err := readFrames(path, have)
	for _, rows := range frames {
		err = errors.Join(err, eachRow(rows, func(int, []any) error { return nil }))
	}
	return err
}

// startReads is what a start reads, or asks for the newest of. An older
// version has fewer columns, so all that are there are read.
var startReads = []string{
	"SELECT path, dev, inode, offset, replay, head, tail FROM files LIMIT 1000",
	"SELECT * FROM tasks WHERE state <> 'done' ORDER BY seq LIMIT 1000",
	"SELECT * FROM tasks WHERE " + unsettled + " ORDER BY seq LIMIT 1000",
	"SELECT * FROM tasks ORDER BY seq DESC LIMIT 1",
	"SELECT id, revision FROM tasks ORDER BY id, revision LIMIT 1",
	"SELECT * FROM runs ORDER BY task DESC LIMIT 1",
	"SELECT seq, time, kind, task, data FROM events ORDER BY seq DESC LIMIT 1",
	"SELECT task, body FROM requests ORDER BY task DESC LIMIT 1",
	"SELECT task, body FROM results ORDER BY task DESC LIMIT 1",
}

// conversationReads are the same of what version 5 brought.
var conversationReads = []string{
	"SELECT * FROM talks WHERE open = 1 ORDER BY task LIMIT 1000",
	"SELECT * FROM messages WHERE inbox <> '' AND posted IS NULL ORDER BY seq LIMIT 1000",
	"SELECT * FROM messages ORDER BY seq DESC LIMIT 1",
	"SELECT * FROM speakers LIMIT 1000",
}

func checkStart(ctx context.Context, db *sql.DB, version int) error {
	reads := startReads
	if version >= 5 {
		reads = slices.Concat(startReads, conversationReads)
	}
	for _, query := range reads {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		for rows.Next() { // looking at a row is what finds a bad page
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// The result codes by which SQLite says that the bytes are wrong: a table or
// column that is not there, a malformed page, no database at all.
const (
	sqliteError   = 1
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// unreadable marks the errors that say the file's bytes are wrong.
func unreadable(err error) error {
	coded, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch coded.Code() & 0xff { // the low byte is the primary code
	case sqliteError, sqliteCorrupt, sqliteNotADB:
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return err
}
