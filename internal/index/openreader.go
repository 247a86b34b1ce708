package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"mailboxd/internal/journal"
)

// OpenReader returns a reader of all that the journal in a directory has by now, and of what
// is brought to the index at a path later. It writes no file, and waits for nobody. The
// caller closes it.
func OpenReader(path, dir string) (*Reader, error) {
	r, err := openReader(path, dir)
	if err != nil {
		return nil, fmt.Errorf("read index %s: %w", path, err)
	}
	r.Journal = dir
	return r, nil
}

func openReader(path, dir string) (*Reader, error) {
	r, mark, err := openStored(path)
	if err != nil {
		if unusable(err) || errors.Is(err, fs.ErrNotExist) {
			return build(dir)
		}
		return nil, err
	}
	var t *Tail
	c := newCatchUp(r.read, func(rows []Change, end journal.Position) (err error) {
		if t == nil {
			if t, err = newTail(path); err != nil {
				return err
			}
		}
		return t.Put(rows, end, false)
	})
	_, err = c.run(dir, mark, nil)
	if err == nil && t == nil {
		return r, nil
	}
	err = errors.Join(err, r.Close())
	if err == nil {
		return t.Reader, t.finish()
	}
	if t != nil {
		err = errors.Join(err, t.Close())
	}
	if errors.Is(err, journal.ErrNoPosition) || unusable(err) {
		return build(dir)
	}
	return nil, err
}

// errPart says that an index is not whole without a file that only a writer can make.
var errPart = fmt.Errorf("%w, or is a part of a copy", errVersion)

// openStored opens the index at a path as it is, and returns its mark.
func openStored(path string) (*Reader, journal.Position, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, journal.Position{}, err // SQLite would say only that it can't
	}
	if _, err := os.Stat(path + "-shm"); errors.Is(err, fs.ErrNotExist) {
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			return nil, journal.Position{}, errPart
		}
	}
	r, err := openURI(storedURI(path))
	if err != nil {
		return nil, journal.Position{}, err
	}
	have, _, err := first(context.Background(), r.read, one[int], "PRAGMA user_version")
	if err == nil {
		err = checkVersion(have)
	}
	var mark journal.Position
	if err == nil {
		mark, _, err = first(context.Background(), r.read, scanMark, markQuery)
	}
	if err != nil {
		return nil, mark, errors.Join(err, r.Close())
	}
	return r, mark, nil
}

// storedURI names the file of an index for a process that writes nothing, not even to the
// files beside it. They are there once the index was open for writing: an index without them
// is a copy, which nobody changes.
func storedURI(path string) string {
	options := url.Values{"mode": {"ro"}, "readonly_shm": {"1"}, "_pragma": {"busy_timeout(5000)", "temp_store(MEMORY)"}}
	if _, err := os.Stat(path + "-shm"); errors.Is(err, fs.ErrNotExist) {
		options.Set("immutable", "1")
	}
	return uri(path, options)
}

// build makes an index of the whole journal that is gone when it is closed. SQLite keeps it
// in memory up to 64 MB, and in a file without a name beyond.
func build(dir string) (*Reader, error) {
	db, err := openMemory("")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	x := &Index{Reader: &Reader{db: db, read: newStatements(conn.PrepareContext)}, conn: conn, batches: newBatches(&definitions)}
	if err = x.create(); err == nil {
		_, err = x.CatchUp(dir, nil)
	}
	if err = errors.Join(err, x.read.close(), x.batches.close(conn), conn.Close()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{db: db, read: newStatements(db.PrepareContext), built: true}, nil
}

// Verify reads the whole journal and every page of the index, and returns the first thing
// that is not as it must be. It takes about 20 s for a million tasks.
func (r *Reader) Verify(ctx context.Context) error {
	mark, _, err := first(ctx, r.read, scanMark, markQuery)
	if err == nil {
		_, err = journal.Verify(ctx, r.Journal, mark)
	}
	verdict := "ok"
	if err == nil && !r.built {
		verdict, _, err = first(ctx, r.read, one[string], "PRAGMA quick_check(1)")
	}
	if err == nil && verdict != "ok" {
		err = fmt.Errorf("the index is damaged: %s; a start builds it again once it is deleted", strings.ReplaceAll(verdict, "\n", " "))
	}
	if err != nil {
		return fmt.Errorf("verify ledger: %w", err)
	}
	return nil
}

func openURI(uri string) (*Reader, error) {
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4) // opening one costs as much as many reads
	return &Reader{db: db, read: newStatements(db.PrepareContext)}, nil
}
