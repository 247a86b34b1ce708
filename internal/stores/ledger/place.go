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
	"time"

	"mailboxd/internal/testtools/fault"
)

// besides are the ends of the names of the files of one ledger: the one that SQLite
// keeps, its write-ahead log and that log's index, the number of the last commit, and the redo log
// of an older version.
var besides = []string{"", "-wal", "-shm", lastEnd, redoEnds[0], redoEnds[1]}

// create puts an empty ledger at path, where there must be none. It is made
// aside and renamed, so that what is at path is always whole. It records the
// loss of a ledger before it, if there was one.
func create(path string, opened Opened) error {
	aside := path + ".new"
	for _, end := range besides { // of a creation that was cut short
		if err := os.Remove(aside + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(aside, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite gives the log the same mode
	if err != nil {
		return err
	}
	if err := errors.Join(fill(aside, opened), file.Sync(), file.Close()); err != nil {
		return err
	}
	fault.SyncedAt("ledger-synced", aside)
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fill gives an empty file the schema; closing leaves no log beside it.
func fill(path string, opened Opened) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	err = bringForward(ctx, conn, path)
	if err == nil && opened.Lost() {
		err = noteLoss(ctx, conn, opened)
	}
	return errors.Join(err, conn.Close(), db.Close())
}

// moveAside renames an unreadable ledger, with what belongs to it, to a name
// that nothing has yet, and returns that name.
func moveAside(path string, now time.Time) (string, error) {
	aside := path + unreadableMark + now.UTC().Format("20060102T150405Z")
	for n := 2; taken(aside); n++ {
		aside = fmt.Sprintf("%s%s%s.%d", path, unreadableMark, now.UTC().Format("20060102T150405Z"), n)
	}
	for _, end := range besides {
		if err := os.Rename(path+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move it aside: %w", err)
		}
	}
	return aside, syncDir(filepath.Dir(path))
}

// unreadableMark is what the name of a ledger has before the time at which it
// was moved aside.
const unreadableMark = ".unreadable-"

// lastAside returns the newest ledger that was moved aside, or "". Where there
// is one and none in its place, a start was cut short, or a person wants to
// start anew: tasks that were accepted before may have run in either case.
func lastAside(path string) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(path)) // in order of name, and so of time
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		name := e.Name()
		if strings.HasPrefix(name, filepath.Base(path)+unreadableMark) && !slices.ContainsFunc(besides[1:], func(end string) bool { return strings.HasSuffix(name, end) }) {
			return filepath.Join(filepath.Dir(path), name), nil
		}
	}
	return "", nil
}

func taken(path string) bool {
	for _, end := range besides {
		if _, err := os.Lstat(path + end); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// syncDir makes the renames in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if err == nil {
		fault.Synced("ledger-named", dir)
	}
	return errors.Join(err, dir.Close())
}
