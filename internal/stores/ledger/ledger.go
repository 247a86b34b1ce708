// Package ledger stores every task, run and event in SQLite. After Update returns nil, its change
// survives a power cut; before, the change is there whole or not at all.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"
)

// A Ledger stores the tasks, runs and events of a daemon: Update writes, and the
// embedded Reader reads what is committed. Only Open makes one. It may be used from several
// goroutines at once. One process at a time may have a path open for writing;
// the lock on the state directory sees to that.
type Ledger struct {
	*Reader
	path        string
	writer      *writer // only serveWriter uses it
	checkpoints *checkpointer
	woken       chan struct{} // has a token when a group is to be formed
	between     chan func()   // what the writer runs between two groups
	closing     chan struct{} // closed when nothing is to be written any more
	background  sync.WaitGroup

	mu      sync.Mutex    // guards what follows
	queued  []*update     // what the next group will run
	changed chan struct{} // closed at the next commit; nil: no caller waits for it
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

// prepare makes a file at path that connect can use, unless there is one.
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
	w, err := openWriter(path)
	if err != nil {
		return nil, err
	}
	l := &Ledger{path: path, writer: w, woken: make(chan struct{}, 1), between: make(chan func()), closing: make(chan struct{})}
	if l.checkpoints, err = openCheckpointer(path); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if l.Reader, err = newReader(path, false); err != nil {
		return nil, errors.Join(err, l.checkpoints.close(), w.close())
	}
	if _, err = l.emptyLog(); err != nil {
		return nil, errors.Join(err, l.Reader.Close(), l.checkpoints.close(), w.close())
	}
	l.background.Go(l.serveWriter)
	l.background.Go(l.serveCheckpoints)
	return l, nil
}

// Close leaves nothing in the log beside the file, unless another program reads. It must not be called
// while an Update or a read is going on; an Update after it is ErrClosed.
func (l *Ledger) Close() error {
	close(l.closing)
	l.background.Wait()
	if err := errors.Join(l.Reader.Close(), l.checkpoints.close(), l.writer.close()); err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}
