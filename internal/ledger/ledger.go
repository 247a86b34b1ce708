// Package ledger remembers every task, run and event, in SQLite behind a redo
// log. What Update has returned nil for is there after a power cut; what it has
// not is there whole or not at all.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Ledger is the daemon's memory: Update writes, and the embedded Reader
// reads what is committed. Only Open makes one. It may be used from several
// goroutines at once. One process at a time may have a path open for writing;
// the lock on the state directory sees to that.
type Ledger struct {
	*Reader            // of all that is durable
	idleReader *Reader // of what the tables have
	path       string
	db         *sql.DB
	conn       *sql.Conn     // the one connection that writes
	committer  chan struct{} // holds a token while somebody commits a group, or freezes what is live
	writing    chan struct{} // and while somebody writes to the tables: anyone who wants both takes lead first
	due        chan struct{} // signalled when something is to be folded
	closing    chan struct{} // closed when nobody is to fold any more
	folder     sync.WaitGroup
	timed      atomic.Bool // due will be signalled
	stuck      atomic.Bool // the last fold has failed

	write    *statements // who is writing guards it
	tables   *tables
	redo     *redo  // who leads guards it
	lastTask int64  // the highest Seq that was given; 0: to be looked up
	folded   uint64 // the last frame of what is folded; who is writing guards it

	mu      sync.Mutex    // guards what follows; live is changed only by who leads
	counts  openCounts    // of what is durable; zero: to be counted; changed only by who leads
	live    *memtable     // what the tables do not have, and nobody is bringing there
	folding *memtable     // what somebody is bringing to the tables; nil: nothing
	still   readCache     // what is as the tables have it
	queued  []*update     // what the next group will run
	changed chan struct{} // closed at the next commit; nil: nobody waits for it
}

// Opened says what Open had to do. Its zero value is "nothing": there was a
// ledger and it is readable.
type Opened struct {
	Created bool   // there was none, or none that can be read, so this one is empty
	Aside   string // where an unreadable one was moved, now or by an Open that was cut short; "" when there was none
	Cause   error  // why it cannot be read, or ErrMissing; nil when there was none, or it was moved before
}

// Lost reports whether there was a ledger before the one that was created.
func (o Opened) Lost() bool { return o.Created && (o.Aside != "" || o.Cause != nil) }

// ErrMissing says that there is no ledger where there was one.
var ErrMissing = errors.New("is missing")

// Open opens the ledger at path, which must be absolute and in a directory
// that exists, and makes an empty one, mode 0600, where there is none. An
// older schema is brought forward; a newer one is ErrNewer and stays
// untouched. A file that cannot be read as a ledger is moved aside, reported
// in Opened and replaced by an empty one, never overwritten. An error of the
// disk or of permissions moves nothing.
//
// Traces are what else there is of an earlier ledger's time. Where there are some
// and no ledger, that one is lost: Opened has ErrMissing, and Lost is true.
func Open(path string, traces ...string) (*Ledger, Opened, error) {
	opened, err := prepare(path, traces)
	if err != nil {
		return nil, opened, fmt.Errorf("open ledger %s: %w", path, withErrno(path, err))
	}
	l, err := connect(path)
	if err != nil {
		return nil, opened, fmt.Errorf("open ledger %s: %w", path, withErrno(path, err))
	}
	return l, opened, nil
}

// prepare sees to it that there is a file at path which connect can use.
func prepare(path string, traces []string) (opened Opened, err error) {
	err = inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if opened.Aside, err = lastAside(path); err != nil {
			return opened, err
		}
		if len(traces) > 0 && opened.Aside == "" {
			opened.Cause = fmt.Errorf("%w, although there is %s", ErrMissing, strings.Join(traces, " and "))
		}
	case errors.Is(err, errUnreadable):
		opened.Cause = err
		if opened.Aside, err = moveAside(path, time.Now()); err != nil {
			return opened, err
		}
	default:
		return opened, err
	}
	opened.Created = true
	return opened, create(path, opened)
}

func connect(path string) (*Ledger, error) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	l := &Ledger{
		path: path, db: db, conn: conn, write: newStatements(conn.PrepareContext),
		committer: make(chan struct{}, 1), writing: make(chan struct{}, 1), due: make(chan struct{}, 1), closing: make(chan struct{}),
		live: newLayer(), still: readCache{tasks: map[int64]*Request{}},
	}
	l.tables = newTables(l.conn)
	before, err := schemaVersion(ctx, conn)
	if err == nil {
		err = migrate(ctx, conn, migrations)
	}
	if err == nil {
		err = l.recoverRedo()
	}
	if err == nil && before < 13 { // for the events of the redo log
		_, err = conn.ExecContext(ctx, schema13)
	}
	if err == nil {
		l.idleReader, err = newReader(path, false)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(), db.Close())
	}
	l.Reader = &Reader{db: l.idleReader.db, read: newStatements(l.idleReader.db.PrepareContext)}
	l.Reader.read.before = l.flush
	l.folder.Go(l.foldAll)
	return l, nil
}

// recoverRedo brings to the tables what the redo log has from before.
func (l *Ledger) recoverRedo() (err error) {
	if l.redo, err = openRedo(l.path); err != nil {
		return err
	}
	if l.redo.last, err = l.tables.takeUp(l.write, l.path, func() error { return setLive(l.write, true) }); err != nil {
		return errors.Join(fmt.Errorf("take up redo log: %w", err), l.redo.close())
	}
	return nil
}

// Close brings everything to the tables, and leaves nothing in the logs beside the
// file. It must not be called while an Update or a read is going on.
func (l *Ledger) Close() error {
	close(l.closing)
	l.folder.Wait()
	err := l.flush()
	if err == nil {
		err = setLive(l.write, false)
	}
	if err == nil {
		err = l.redo.clear()
	}
	err = errors.Join(err, l.Reader.read.close(), l.idleReader.Close(), l.tables.close(), l.write.close(), l.conn.Close(), l.db.Close(), l.redo.close())
	if err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}
