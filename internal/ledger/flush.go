package ledger

import (
	"fmt"
	"time"

	"mailboxd/internal/fault"
)

const (
	foldAfter = 50 * time.Millisecond // how long a change stays out of the tables
	foldSize  = 1 << 20               // or how many bytes of them
	mostBytes = 16 << 20              // at which groups wait until the tables have them
)

// layers returns what the tables do not have yet, the latest first.
func (l *Ledger) layers() []*memtable {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folding == nil {
		return []*memtable{l.live}
	}
	return []*memtable{l.live, l.folding}
}

// flush brings what is durable in the redo log to the tables: all that was there
// when it was called. Groups go on meanwhile.
func (l *Ledger) flush() error {
	for range 2 { // what an earlier one could not bring, and the rest
		if again, err := l.foldOnce(); err != nil || !again {
			return withErrno(l.path, err)
		}
	}
	return nil
}

func (l *Ledger) foldOnce() (again bool, err error) {
	if !l.pending() {
		return false, nil
	}
	l.committer <- struct{}{} // between two groups
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	if l.redo.broken { // no group may go on in it
		defer func() { <-l.committer }()
		return false, l.foldBroken()
	}
	again = l.freeze()
	<-l.committer
	if l.folding == nil {
		return false, nil
	}
	err = l.commitTables(l.folded, l.folding)
	if l.stuck.Store(err != nil); err != nil {
		return false, fmt.Errorf("fold redo log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rememberFolded(l.folding)
	l.folding = nil
	return again, nil
}

// foldBroken brings all that there is to the tables. The caller has lead and
// writing.
func (l *Ledger) foldBroken() error {
	if err := l.commitTables(l.redo.last, l.layers()...); err != nil {
		return fmt.Errorf("fold redo log: %w", err)
	}
	l.begunAnew()
	return nil
}

// begunAnew takes note that the tables have everything. The caller has lead.
func (l *Ledger) begunAnew() {
	l.stuck.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live, l.folding = newLayer(), nil
	l.still.clear() // any of it may have been changed
	l.redo.rewind(l.redo.active)
}

// pending reports whether the tables miss something.
func (l *Ledger) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folding != nil || !l.live.empty()
}

// freeze makes what is live what is folded, and reports whether there is more
// than that. The caller has both lead and writing.
func (l *Ledger) freeze() (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folding != nil {
		return true // of a fold that failed
	}
	if l.live.empty() {
		return false
	}
	l.folding, l.live = l.live, newLayer()
	l.folded = l.redo.last
	l.redo.turn()
	return false
}

// commitTables writes layers to the tables in one transaction, after which the
// frames up to a number are not needed any more. The caller has writing.
func (l *Ledger) commitTables(upTo uint64, layers ...*memtable) error {
	_, err := l.write.run("BEGIN IMMEDIATE")
	if err == nil {
		err = l.tables.write(layers...)
	}
	if err == nil {
		err = endTables(l.write, l.path, upTo)
	}
	if err != nil {
		_, _ = l.write.run("ROLLBACK") // were its error another than that SQLite has done so, the next BEGIN would say it
	}
	return err
}

// endTables commits the transaction of SQLite that is open, with the number of the
// last frame that the tables have then.
func endTables(write *statements, path string, upTo uint64) error {
	if _, err := write.run(appliedUpdate, int64(upTo)); err != nil {
		return err
	}
	if err := fault.Read("write ledger"); err != nil {
		return err
	}
	if _, err := write.run("COMMIT"); err != nil {
		return err
	}
	fault.SyncedAt("committed", path+"-wal")
	return nil
}

// foldSoon has somebody fold what is live, soon or at once when it is much. The
// caller holds mu.
func (l *Ledger) foldSoon() {
	if l.live.bytes >= foldSize {
		l.wakeFolder()
	} else if !l.timed.Swap(true) {
		time.AfterFunc(foldAfter, l.wakeFolder)
	}
}

func (l *Ledger) wakeFolder() {
	l.timed.Store(false)
	select {
	case l.due <- struct{}{}:
	default: // it is awake
	}
}

// foldAll folds as it becomes due, until the ledger is closed. What it cannot do, the
// next group does, or says why.
func (l *Ledger) foldAll() {
	for {
		select {
		case <-l.due:
			if l.flush() != nil {
				time.AfterFunc(time.Second, l.wakeFolder)
			}
		case <-l.closing:
			return
		}
	}
}
