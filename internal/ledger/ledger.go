// Package ledger has every task, run and event. The journal is the truth, memory has the
// open tasks, and the index the rest. What Update has returned nil for is there after a
// power cut; a change that failed is there whole or not at all.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mailboxd/internal/index"
	"mailboxd/internal/journal"
)

// The types of the index that callers of the ledger need.
type (
	Reader     = index.Reader
	Filter     = index.Filter
	File       = index.File
	DeadLetter = index.DeadLetter
	Final      = index.Final
	Aged       = index.Aged
)

// ErrUnknown says that the ledger has no such task, or no such body of it.
var ErrUnknown = index.ErrUnknown

// A Ledger is written by Update; the embedded Reader reads what is durable. Only Open makes
// one. It may be used from several goroutines at once. One process at a time may have a path
// open for writing.
type Ledger struct {
	*Reader
	journal *journal.Journal
	index   *index.Index

	lead    chan struct{} // holds a token while a group is committed; guards what follows
	numbers numbers
	evicted uint64 // up to which event
	failed  *layer // the group of which nobody knows whether the journal has it; nil: none

	project projector
	indexed atomic.Uint64                // the last event that the index has
	behind  atomic.Pointer[index.Reader] // answers while the index is not where Open wanted it; nil: it is
	late    *index.Reader                // closed by Close; nil: Open has brought the index there

	mu      sync.Mutex // guards what follows; base is changed only by the leader
	base    *base
	queued  []*update     // what the next group runs
	changed chan struct{} // closed at the next commit; nil: nobody waits for it
}

// The numbers are the highest Seqs that were given.
type numbers struct{ task, approval, message, deadLetter int64 }

// Opened says what Open had to do. Its zero value is "nothing".
type Opened struct {
	Created bool   // there was none, or none that can be read, so this one is empty
	Aside   string // where an unreadable one was moved; "" when there was none
	Cause   error  // why it can't be read, or ErrMissing; nil when there was none
}

// Lost reports whether there was a ledger before the one that was created.
func (o Opened) Lost() bool { return o.Created && (o.Aside != "" || o.Cause != nil) }

// Options are how OpenWith opens a ledger.
type Options struct {
	// Traces are what else there is of an earlier ledger's time. If there are some and no
	// ledger, that one is lost: Opened has ErrMissing, and Lost is true.
	Traces []string
	// Progress, unless nil, is called now and then while the ledger of an earlier version is
	// imported, with the numbers of tasks.
	Progress func(done, total int)
}

// Open is OpenWith without Progress.
func Open(path string, traces ...string) (*Ledger, Opened, error) {
	return OpenWith(path, Options{Traces: traces})
}

// OpenWith opens the ledger of a state directory, by the path of the file that earlier versions
// had there, which is imported once. It makes an empty one where there is none. A ledger that
// can't be read is moved aside. The error for one of a newer version is ErrNewer.
func OpenWith(path string, o Options) (*Ledger, Opened, error) {
	opened, err := prepare(path, o)
	var l *Ledger
	if err == nil {
		l, err = open(path)
	}
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		opened.Created, opened.Cause = true, damage
		if opened.Aside, err = moveAside(Dir(path), []string{""}, path, time.Now()); err == nil {
			l, err = open(path)
		}
	}
	if err == nil && opened.Created {
		if opened.Lost() {
			err = l.noteLoss(opened)
		} else {
			err = l.journal.WriteHead()
		}
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	if err != nil {
		return nil, opened, fmt.Errorf("open ledger %s: %w", filepath.Dir(path), err)
	}
	return l, opened, nil
}

// Dir is the directory of the journal beside the path of an earlier version's ledger.
func Dir(path string) string { return filepath.Join(filepath.Dir(path), "journal") }

func indexPath(path string) string { return filepath.Join(filepath.Dir(path), "index.db") }

func open(path string) (l *Ledger, err error) {
	l = &Ledger{lead: make(chan struct{}, 1), base: newBase()}
	if l.index, err = index.Open(indexPath(path)); err != nil {
		return nil, err
	}
	if err = l.openJournal(path); err != nil {
		return nil, errors.Join(err, l.index.Close())
	}
	l.index.Journal = Dir(path)
	l.index.Instead(func() (*index.Reader, error) { return l.behind.Load(), nil })
	l.project.ledger = l
	err = l.catchUp(path)
	if err == nil {
		err = l.load()
	}
	if err == nil {
		l.Reader, err = l.index.NewReader()
	}
	if err != nil {
		return nil, errors.Join(err, l.closeLate(), l.index.Close(), l.journal.Close())
	}
	l.Journal = Dir(path)
	l.Instead(l.project.reader)
	l.project.start()
	return l, nil
}

// catchUp brings the index to the end of the journal. If the disk does not take it, a reader
// from memory answers until it does.
func (l *Ledger) catchUp(path string) error {
	_, err := l.index.CatchUp(Dir(path), nil)
	if !index.CannotWrite(err) {
		return err
	}
	r, failed := index.OpenReader(indexPath(path), Dir(path))
	if failed != nil {
		return errors.Join(err, failed)
	}
	l.behind.Store(r)
	l.late, l.project.failed = r, err
	return nil
}

// load reads the open tasks, and what else belongs into memory.
func (l *Ledger) load() error {
	ctx := context.Background()
	for after := int64(0); ; {
		list, err := l.index.Open(ctx, after, loadedAtOnce)
		for i := range list {
			l.base.set(&entry{Task: list[i]})
			after = list[i].Seq
		}
		if err != nil || len(list) < loadedAtOnce {
			return errors.Join(err, l.loadNumbers(ctx))
		}
	}
}

// loadedAtOnce is how many tasks one query reads at the start.
const loadedAtOnce = 10_000

func (l *Ledger) loadNumbers(ctx context.Context) error {
	last, err := l.index.LastSeqs(ctx)
	l.numbers = numbers{last[0], last[1], last[2], last[3]}
	if err != nil {
		return err
	}
	paused, err := l.index.Paused(ctx)
	for _, agent := range paused {
		put(&l.base.pauses, agent, true)
	}
	if err != nil {
		return err
	}
	news, err := l.index.Announcements(ctx)
	for _, a := range news {
		put(&l.base.news, a.Name, a)
	}
	return err
}

// closeLate closes what has answered in the place of the index.
func (l *Ledger) closeLate() error {
	if l.late == nil {
		return nil
	}
	return l.late.Close()
}

// Close has the index take everything, and closes it and the journal. It must not be called
// while an Update or a read is going on.
func (l *Ledger) Close() error {
	err := errors.Join(l.project.close(), l.closeLate(), l.Reader.Close(), l.index.Close(), l.journal.Close())
	if err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// Changed returns a channel that is closed when another group is committed. A follower asks
// for it first, then reads, then waits, and misses nothing.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// OpenReader returns a reader of what the ledger has by now, and of what a daemon brings to
// its index later. It writes nothing. While it is open, its process can't Open the ledger;
// others can. The error wraps fs.ErrNotExist where there is no
// ledger, and ErrNewer.
func OpenReader(path string) (*Reader, error) {
	err := checkReader(path)
	if err == nil {
		_, err = os.Stat(Dir(path))
	}
	var r *Reader
	if err == nil {
		r, err = index.OpenReader(indexPath(path), Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", filepath.Dir(path), err)
	}
	return r, nil
}
