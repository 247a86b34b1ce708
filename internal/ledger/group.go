package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/fault"
)

// An update is one caller's wish to write.
type update struct {
	fn   func(*Tx) error
	done chan struct{} // closed once err says how it ended
	err  error
}

func (u *update) finish(err error) {
	u.err = err
	close(u.done)
}

// Update runs fn in a transaction and returns nil when what it wrote is
// durable. An error of fn is returned as it is, and nothing of fn is kept.
//
// Callers that come while a commit is under way share the next one, and one
// of them runs the functions of all, each seeing what those before it wrote.
// So fn may be run by another goroutine than its caller's, and more than
// once: it has no effects but those on its Tx and on its own results, which
// it sets anew each time, and it calls neither Update nor runtime.Goexit. A
// ctx that ends before fn's group is formed takes fn back; from then on it
// does not matter any more.
func (l *Ledger) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.join(ctx, l.enqueue(fn))
}

// soon is how long UpdateSoon waits for somebody else's transaction.
const soon = 10 * time.Millisecond

// UpdateSoon is Update for what nobody waits for: it rides in the next
// transaction of somebody else, which saves a sync of its own, and has one of
// its own only when none has come for a moment.
func (l *Ledger) UpdateSoon(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.await(ctx, l.enqueue(fn), soon)
}

// await waits for somebody else's group to run the update, and when none has
// for a while, joins.
func (l *Ledger) await(ctx context.Context, u *update, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.err
	case <-timer.C:
		return l.join(ctx, u)
	}
}

// enqueue has a function wait for the next group.
func (l *Ledger) enqueue(fn func(*Tx) error) *update {
	u := &update{fn: fn, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = append(l.queued, u)
	return u
}

// join waits until a group has run the update, and leads one if nobody else does.
func (l *Ledger) join(ctx context.Context, u *update) error {
	select {
	case l.committer <- struct{}{}:
		l.commit(l.gather())
		<-l.committer
	case <-u.done:
	case <-ctx.Done():
		if l.leave(u) {
			return ctx.Err()
		}
	}
	<-u.done // a group of ours was formed before: it ends, whatever ctx says
	return u.err
}

// gather forms a group of everybody who waits.
func (l *Ledger) gather() []*update {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := l.queued
	l.queued = nil
	return group
}

// leave takes an update back, unless a group has it.
func (l *Ledger) leave(u *update) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queued, u)
	if at < 0 {
		return false
	}
	l.queued = slices.Delete(l.queued, at, at+1)
	return true
}

// commit runs the group in one transaction. A function that fails is told so
// and the others start over without it.
func (l *Ledger) commit(group []*update) {
	oneByOne := false
	for len(group) > 0 {
		failed, err := l.try(group, oneByOne)
		switch {
		case err == errWhose:
			oneByOne = true
		case failed < 0:
			err = withErrno(l.path, err)
			for _, u := range group {
				u.finish(err)
			}
			return
		default:
			group[failed].finish(withErrno(l.path, err))
			group = slices.Delete(group, failed, failed+1)
		}
	}
}

// errWhose says that some row of a group cannot be written, and not whose.
var errWhose = errors.New("a row cannot be written")

// try runs all functions of the group, in one transaction. When one of them
// fails, nothing is kept and its index is returned; an error with no index
// is the transaction's own. What the functions change is brought to the tables
// together, or after each of them, which finds out whose cannot be.
func (l *Ledger) try(group []*update, oneByOne bool) (failed int, err error) {
	tx := &Tx{ledger: l, write: l.write, stage: newLayer(), below: l.layers(), absent: map[envelope.ID]bool{}}
	l.write.before = tx.toTables
	defer tx.end()
	if l.redo.broken || l.stuck.Load() || tx.below[0].bytes > mostBytes {
		if err := tx.toTables(); err != nil {
			return -1, fmt.Errorf("begin update: %w", err)
		}
	}
	oneByOne = oneByOne || len(group) == 1
	for i, u := range group {
		tx.wrong = nil
		err := cmp.Or(u.fn(tx), tx.wrong)
		if err == nil && tx.opened && (oneByOne || i == len(group)-1) {
			err = tx.toTables()
		}
		if !oneByOne && tx.unclear != nil {
			return -1, errWhose
		}
		if err = cmp.Or(err, tx.unclear); err != nil {
			return i, err
		}
	}
	fault.Point("written-uncommitted")
	if err := tx.commit(); err != nil {
		l.forgetCounts()
		return -1, fmt.Errorf("commit update: %w", err)
	}
	l.countCommitted(tx.counts)
	l.announce()
	return -1, nil
}

// commit makes durable what the group has changed.
func (tx *Tx) commit() error {
	l := tx.ledger
	if tx.stage.bytes > mostBytes { // many results at once are more than a frame may have
		if err := tx.toTables(); err != nil {
			return err
		}
	}
	if tx.opened {
		if err := endTables(l.write, l.path, l.redo.last); err != nil {
			l.redo.skip() // nobody knows whether it is on the disk
			return err
		}
		tx.opened = false
		l.begunAnew()
		<-l.writing
		return nil
	}
	if tx.stage.empty() {
		return nil
	}
	if err := l.redo.add(tx.stage); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.merge(tx.stage)
	for seq := range tx.stage.tasks {
		l.still.forget(seq)
	}
	l.foldSoon()
	return nil
}

// end gives up what the group has changed, unless that is durable. The error of
// ROLLBACK says that SQLite has done so already; were it another, the next BEGIN
// would say it.
func (tx *Tx) end() {
	tx.ledger.write.before = nil
	if tx.opened {
		tx.ledger.tables.forget()
		_, _ = tx.write.run("ROLLBACK")
		<-tx.ledger.writing
	}
}
