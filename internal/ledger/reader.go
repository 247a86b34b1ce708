package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// ErrUnknown says that the ledger has no such task, or no such body of it.
var ErrUnknown = errors.New("is not in the ledger")

// errBehind says that the tables miss what is durable in the redo log.
var errBehind = errors.New("the daemon doesn't bring the latest changes to the tables; see mailboxd doctor")

// A Reader reads what is committed, beside a writer or without one. It may be
// used from several goroutines at once. Each call sees one moment; two calls
// may see two.
type Reader struct {
	db      *sql.DB
	read    *statements
	path    string
	durable uint64 // the last frame of the redo log when it was opened; 0: unknown
}

// OpenReader opens the ledger at path, which must be absolute, and changes nothing
// that it says. It has all that was durable by then, and what a writer brings to the
// tables later; beside a writer that can't write to the tables, it has what they have. It is
// for a short look: an open reader keeps the write-ahead log from being folded into the file.
// The error wraps fs.ErrNotExist where there is no ledger, and ErrNewer.
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
		err = errors.Join(migrate(ctx, conn, migrations), conn.Close())
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{db: db, read: newStatements(db.PrepareContext), path: ":memory:"}, nil
}

func openReader(path string) (*Reader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err // SQLite would say only that it cannot
	}
	r, version, err := openVersion(path, isWhole(path) && isUnwritable(path))
	if coded, ok := errors.AsType[*sqlite.Error](err); ok && coded.Code() == sqliteIOErrShmSize && isWhole(path) {
		r, version, err = openVersion(path, true) // the disk is full, so SQLite can't make its index of the log
	}
	if err != nil {
		return nil, unreadable(err)
	}
	switch {
	case version > len(migrations):
		err = ErrNewer
	case version < len(migrations):
		err = fmt.Errorf("has schema version %d; the daemon brings it to %d when it starts", version, len(migrations))
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	busy, err := redoBusy(path)
	if err == nil && !busy {
		failed := r.takeUpRedo(path)
		if busy, err = redoBusy(path); !busy { // one may have started meanwhile
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if busy {
		ctx, stop := context.WithTimeout(background, 10*foldAfter)
		defer stop()
		r.durable, _ = r.awaitFold(ctx, 0) // for a look, what the tables have is enough
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

// awaitFold waits until the tables have the frames up to last; 0 is the last one that is
// durable now. A writer sees to that within a moment, or waits itself for the transaction that
// blocks it.
func (r *Reader) awaitFold(ctx context.Context, last uint64) (uint64, error) {
	for {
		applied, frames, err := r.behind(r.path)
		if err == nil && last == 0 {
			last = applied + uint64(len(frames))
		}
		if err == nil && applied >= last {
			return last, nil
		}
		if busy, unknown := redoBusy(r.path); unknown == nil && !busy { // the writer was killed meanwhile
			err = errors.Join(err, r.takeUpRedo(r.path))
		}
		select {
		case <-ctx.Done():
			return last, errors.Join(errBehind, err)
		case <-time.After(foldAfter / 10):
		}
	}
}

// behind returns the frames of the redo log that the tables do not have, and the
// number of the last one that they have.
func (r *Reader) behind(path string) (applied uint64, frames [][]byte, err error) {
	have, _, err := first(background, r.read, scanExtent, extentQuery)
	if err == nil {
		frames, err = readFrames(path, have)
	}
	return have.applied, frames, err
}

// takeUpRedo brings to the tables what a writer that was killed left in the redo
// log, as the next one would: until then the tables are behind. That is over when it
// returns, so who reads for long keeps nobody from starting.
func (r *Reader) takeUpRedo(path string) error {
	if _, frames, err := r.behind(path); err != nil || len(frames) == 0 {
		return err
	}
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return err
	}
	err = redoInto(db, path)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("take up redo log: %w", err)
	}
	return nil
}

// redoInto commits to the tables what the redo log has, unless somebody who writes
// has started meanwhile: anyone who starts after that waits for the commit.
func redoInto(db *sql.DB, path string) error {
	conn, err := db.Conn(background)
	if err != nil {
		return err
	}
	w, write := newTables(conn), newStatements(conn.PrepareContext)
	_, err = w.takeUp(write, path, func() error {
		busy, err := redoBusy(path)
		if err == nil && busy {
			err = errors.New("it is being written")
		}
		return err
	})
	return errors.Join(err, w.close(), write.close(), conn.Close())
}

func newReader(path string, unchanging bool) (*Reader, error) {
	db, err := sql.Open("sqlite", readURI(path, unchanging))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4) // opening one costs as much as many reads
	return &Reader{db: db, read: newStatements(db.PrepareContext), path: path}, nil
}

// Close ends reading.
func (r *Reader) Close() error {
	return errors.Join(r.read.close(), r.db.Close())
}

// Task returns the revision with this Seq; ErrUnknown when there is none.
func (r *Reader) Task(ctx context.Context, seq int64) (task.Task, error) {
	t, ok, err := first(ctx, r.read, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE seq = ?", seq)
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
