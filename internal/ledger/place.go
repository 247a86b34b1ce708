package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// besides are the ends of the names of the files SQLite keeps for one ledger:
// the file itself, its write-ahead log and that log's index.
var besides = []string{"", "-wal", "-shm"}

// create puts an empty ledger at path, where there must be none. It is made
// aside and renamed, so that what is at path is always whole.
func create(path string) error {
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
	if err := errors.Join(fill(aside), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fill gives an empty file the schema; closing leaves no log beside it.
func fill(path string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(migrate(ctx, conn, migrations), conn.Close(), db.Close())
}

// moveAside renames an unreadable ledger, with what belongs to it, to a name
// that nothing has yet, and returns that name.
func moveAside(path string, now time.Time) (string, error) {
	aside := path + ".unreadable-" + now.UTC().Format("20060102T150405Z")
	for n := 2; taken(aside); n++ {
		aside = fmt.Sprintf("%s.unreadable-%s.%d", path, now.UTC().Format("20060102T150405Z"), n)
	}
	for _, end := range besides {
		if err := os.Rename(path+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move it aside: %w", err)
		}
	}
	return aside, syncDir(filepath.Dir(path))
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
	return errors.Join(dir.Sync(), dir.Close())
}
