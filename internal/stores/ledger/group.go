package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"mailboxd/internal/testtools/fault"
)

// An update is the request of one caller to write.
type update struct {
	fn   func(*Tx) error
	done chan struct{} // closed once err says how it ended
	err  error
}

func (u *update) finish(err error) {
	u.err = err
	close(u.done)
}

// ErrClosed is the error of an Update that does not run, since the ledger is closed.
var ErrClosed = errors.New("the ledger is closed")

// Update runs fn in a transaction and returns nil when what it wrote is
// durable. An error of fn is returned as it is, and nothing of fn is kept.
//
// The goroutine of the ledger runs fn. Functions that come while a commit is under way share
// the next one, each seeing what those before it wrote. So fn may be run more than once: it has
// no effects but those on its Tx and on its own results, which it sets anew each time, and it
// calls neither Update nor runtime.Goexit. A ctx that ends before fn's group is formed takes fn
// back; from then on it does not matter any more.
func (l *Ledger) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := l.enqueue(fn)
	l.wake()
	return l.await(ctx, u)
}

// soon is how long UpdateSoon waits for the transaction of another caller.
const soon = 10 * time.Millisecond

// UpdateSoon is Update for a change that no caller waits for: it is part of the next transaction of
// another caller, which saves a sync, and has a transaction of its own only when none comes in time.
func (l *Ledger) UpdateSoon(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := l.enqueue(fn)
	defer time.AfterFunc(soon, l.wake).Stop()
	return l.await(ctx, u)
}

// enqueue has a function wait for the next group.
func (l *Ledger) enqueue(fn func(*Tx) error) *update {
	u := &update{fn: fn, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = append(l.queued, u)
	return u
}

// wake has the writer form a group.
func (l *Ledger) wake() {
	select {
	case l.woken <- struct{}{}:
	default: // it will, and takes all that wait by then
	}
}

// await waits until a group has run the update, or none will.
func (l *Ledger) await(ctx context.Context, u *update) error {
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		if l.leave(u) {
			return ctx.Err()
		}
	case <-l.closing:
		if l.leave(u) {
			return ErrClosed
		}
	}
	<-u.done // its group was formed before: it ends, whatever ctx says
	return u.err
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

// serveWriter is the one goroutine that uses the writing connection: it runs the groups, and
// what is to run between two of them, until the ledger is closed.
func (l *Ledger) serveWriter() {
	for {
		select {
		case <-l.woken:
			l.awaitOthers()
			l.commit(l.gather())
		case fn := <-l.between:
			fn()
		case <-l.closing:
			return
		}
	}
}

// betweenGroups has the writer run fn while no transaction is open, and reports whether it did:
// not when the ledger is closed.
func (l *Ledger) betweenGroups(fn func()) bool {
	done := make(chan struct{})
	select {
	case l.between <- func() { fn(); close(done) }:
		<-done
		return true
	case <-l.closing:
		return false
	}
}

// awaitOthers lets goroutines that are about to write join the group, while more come. It waits for no time:
// with one caller, it returns at once.
func (l *Ledger) awaitOthers() {
	for before, now := -1, 0; now > before; {
		runtime.Gosched()
		l.mu.Lock()
		before, now = now, len(l.queued)
		l.mu.Unlock()
	}
}

// gather forms a group of all updates that wait.
func (l *Ledger) gather() []*update {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := l.queued
	l.queued = nil
	return group
}

// commit runs the group in one transaction. A function that fails gets its error,
// and the others start over without it.
func (l *Ledger) commit(group []*update) {
	for len(group) > 0 {
		failed, err := l.try(group)
		err = withErrno(l.path, err)
		if failed < 0 {
			for _, u := range group {
				u.finish(err)
			}
			return
		}
		group[failed].finish(err)
		group = slices.Delete(group, failed, failed+1)
	}
}

// try runs all functions of the group in one transaction. When one of them fails, nothing is
// kept and its index is returned; an error with no index is the transaction's own.
func (l *Ledger) try(group []*update) (failed int, err error) {
	if err := l.writer.start(); err != nil {
		return -1, fmt.Errorf("begin update: %w", err)
	}
	tx := &Tx{write: l.writer.write, rows: l.writer.rows, open: map[string]int{}, seals: l.writer.seals.Clone()}
	if err := tx.loadSeals(); err != nil {
		l.writer.fail()
		return -1, fmt.Errorf("read seals: %w", err)
	}
	for i, u := range group {
		err := u.fn(tx)
		if wrong := tx.write.failed; wrong != nil && !isOfOne(wrong) {
			l.writer.fail()
			return -1, fmt.Errorf("write update: %w", wrong)
		}
		if err = cmp.Or(err, tx.write.failed); err != nil {
			l.writer.rollback()
			return i, err
		}
	}
	if !tx.write.wrote {
		l.writer.rollback() // there is nothing to make durable
		return -1, nil
	}
	fault.Point("written-uncommitted")
	err = cmp.Or(tx.saveEvents(), tx.saveCounts(), tx.sealMany())
	if err == nil {
		err = l.writer.commit()
	}
	if err != nil {
		l.writer.fail()
		return -1, fmt.Errorf("commit update: %w", err)
	}
	l.writer.sealed(tx.seals)
	l.checkpoints.committed(tx.write.bytes)
	l.announce()
	return -1, nil
}
