package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// ErrUnknown says that the ledger has no such task, or no such body of it.
var ErrUnknown = errors.New("is not in the ledger")

// A Reader reads what is committed, beside a writer or without one. It may be
// used from several goroutines at once. Each call sees one moment; two calls
// may see two.
type Reader struct {
	db   *sql.DB
	read *statements
}

// OpenReader opens the ledger at path, which must be absolute, and changes nothing
// that it says. It has all that is committed, also later. The error wraps fs.ErrNotExist where
// there is no ledger, and ErrNewer.
func OpenReader(path string) (*Reader, error) {
	r, err := openReader(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	return r, nil
}

// NoLedger returns a reader that finds nothing, for a mailbox that no daemon has served.
func NoLedger(ctx context.Context) (*Reader, error) {
	r, err := emptyReader(ctx)
	if err != nil {
		return nil, fmt.Errorf("open empty ledger: %w", err)
	}
	return r, nil
}

func emptyReader(ctx context.Context) (*Reader, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection has a database of its own
	conn, err := db.Conn(ctx)
	if err == nil {
		err = errors.Join(migrate(ctx, conn, "", 0), conn.Close())
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{db: db, read: newStatements(db.PrepareContext)}, nil
}

func openReader(path string) (*Reader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err // SQLite would say only that it cannot
	}
	last, reading := readLast(path)
	r, version, err := openVersion(path, isWhole(path) && isUnwritable(path))
	if coded, ok := errors.AsType[*sqlite.Error](err); ok && coded.Code() == sqliteIOErrShmSize && isWhole(path) {
		r, version, err = openVersion(path, true) // the disk is full, so SQLite can't make its index of the log
	}
	if err != nil {
		return nil, unreadable(err)
	}
	switch {
	case version > SchemaVersion:
		err = newer(version)
	case version < SchemaVersion:
		err = fmt.Errorf("has schema version %d; the daemon brings it to %d when it starts", version, SchemaVersion)
	default:
		err = checkCommits(r.db, path, last, reading)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// openVersion opens a reader, and reads the version of its schema. With an error, the reader is
// closed.
func openVersion(path string, unchanging bool) (*Reader, int, error) {
	r, err := newReader(path, unchanging)
	if err != nil {
		return nil, 0, err
	}
	version, err := schemaVersion(background, r.db)
	if err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, version, nil
}

func newReader(path string, unchanging bool) (*Reader, error) {
	db, err := sql.Open("sqlite", readURI(path, unchanging))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4) // opening one costs as much as many reads
	return &Reader{db: db, read: newStatements(db.PrepareContext)}, nil
}

// Close ends reading.
func (r *Reader) Close() error {
	return errors.Join(r.read.close(), r.db.Close())
}

// Task returns the revision with this Seq; ErrUnknown when there is none.
func (r *Reader) Task(ctx context.Context, seq int64) (task.Task, error) {
	t, ok, err := first(ctx, r.read, scanTask, taskQuery, seq)
	return known(t, ok, err, "read task", seq)
}

// Raw returns the line of the revision with this Seq, as it came; ErrUnknown
// when there is none.
func (r *Reader) Raw(ctx context.Context, seq int64) ([]byte, error) {
	raw, ok, err := first(ctx, r.read, one[[]byte], "SELECT body FROM requests WHERE task = ?", seq)
	return known(raw, ok, err, "read request of task", seq)
}

// Result returns the bytes of the result of the revision with this Seq;
// ErrUnknown when there is none yet.
func (r *Reader) Result(ctx context.Context, seq int64) ([]byte, error) {
	result, ok, err := first(ctx, r.read, one[[]byte], "SELECT body FROM results WHERE task = ?", seq)
	return known(result, ok, err, "read result of task", seq)
}

func known[T any](v T, ok bool, err error, verb string, seq int64) (T, error) {
	if err == nil && !ok {
		err = ErrUnknown
	}
	if err != nil {
		return v, fmt.Errorf("%s %d: %w", verb, seq, err)
	}
	return v, nil
}

// Revisions returns every revision of an id, the first one first; none when
// the id is not known.
func (r *Reader) Revisions(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE id = ? ORDER BY revision", string(id))
	if err != nil {
		return nil, fmt.Errorf("list revisions of %s: %w", id, err)
	}
	return tasks, nil
}

// mostFound is as many ids as Find returns: enough to say that a prefix is
// not unique, and of what.
const mostFound = 8

// Find returns the ids that begin with prefix, in byte order, so that the id
// which is the prefix comes first; at most 8 of them.
func (r *Reader) Find(ctx context.Context, prefix string) ([]envelope.ID, error) {
	past := prefix + "\xff" // sorts after every id that begins so: no text has this byte
	ids, err := all(ctx, r.read, one[envelope.ID],
		"SELECT DISTINCT id FROM tasks WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", prefix, past, mostFound)
	if err != nil {
		return nil, fmt.Errorf("find task %s: %w", prefix, err)
	}
	return ids, nil
}
