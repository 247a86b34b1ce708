package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"mailboxd/internal/fault"
	"mailboxd/internal/journal"
)

// An update is one caller's function that writes.
type update struct {
	fn   func(*Tx) error
	done chan struct{} // closed once err says how it ended
	err  error
}

func (u *update) finish(err error) {
	u.err = err
	close(u.done)
}

// Update runs fn in a transaction and returns nil when what it wrote is durable. An error of
// fn is returned as it is, and nothing of fn is kept.
//
// Callers that come while a commit is under way share the next one, and one of them runs the
// functions of all, each seeing what those before it wrote. So fn may be run by another
// goroutine than its caller's. It has no effects but those on its Tx and on its own results,
// and it calls neither Update nor runtime.Goexit. A ctx that ends before fn's group is formed
// takes fn back; from then on it does not matter any more.
func (l *Ledger) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.join(ctx, l.enqueue(fn))
}

// soon is how long UpdateSoon waits for the transaction of another caller.
const soon = 10 * time.Millisecond

// UpdateSoon is Update for what no caller waits for: it shares the next transaction of
// another caller, which saves a sync, and has one of its own only after a while without any.
func (l *Ledger) UpdateSoon(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := l.enqueue(fn)
	timer := time.NewTimer(soon)
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
	case l.lead <- struct{}{}:
		l.commit(l.gather())
		<-l.lead
	case <-u.done:
	case <-ctx.Done():
		if l.leave(u) {
			return ctx.Err()
		}
	}
	<-u.done // a group was formed before: it ends, whatever ctx says
	return u.err
}

// gather forms a group of all that wait.
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

// commit runs the functions of a group and makes what they wrote durable. A function that
// fails changes nothing.
func (l *Ledger) commit(group []*update) {
	err := l.project.room()
	if err == nil && l.failed != nil {
		err = l.append(l.failed)
	}
	if err != nil {
		for _, u := range group {
			u.finish(fmt.Errorf("begin update: %w", err))
		}
		return
	}
	l.evict()
	all, kept := &layer{}, group[:0]
	for _, u := range group {
		tx := &Tx{ledger: l, own: &layer{}, group: all, numbers: l.numbers, next: l.journal.Head().N + 1 + uint64(len(all.lines))}
		if err := cmp.Or(u.fn(tx), tx.wrong); err != nil {
			u.finish(err)
			continue
		}
		if len(kept) == 0 {
			all = tx.own
		} else {
			all.merge(tx.own)
		}
		l.numbers = tx.numbers
		kept = append(kept, u)
	}
	if len(all.lines) > 0 {
		fault.Point("written-uncommitted")
		err = l.append(all)
	}
	for _, u := range kept {
		if err != nil {
			u.finish(fmt.Errorf("commit update: %w", err))
		} else {
			u.finish(nil)
		}
	}
}

// append makes a group durable, and then part of the base.
func (l *Ledger) append(g *layer) error {
	events := make([]journal.Event, len(g.lines))
	for i := range g.lines {
		events[i] = g.lines[i].event
	}
	err := fault.Read("write ledger")
	if err == nil {
		_, err = l.journal.Append(events)
		if err != nil {
			l.failed = g // unless the journal can forget it
			if l.journal.Abandon() == nil {
				l.failed = nil
			}
		}
	}
	if err != nil {
		return err
	}
	l.failed = nil
	fault.Point("journal-synced")
	l.publish(g, events)
	return nil
}

// publish makes a durable group part of the base, and hands it to the index.
func (l *Ledger) publish(g *layer, events []journal.Event) {
	for i := range g.lines {
		ln := &g.lines[i]
		if ln.set != nil {
			ln.set(g, events[i].Place)
			if ln.task == 0 {
				ln.change.Locate(&events[i])
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range g.tasks {
		l.base.set(e)
	}
	tasks, lines := g.tasks, g.lines
	g.tasks, g.lines = nil, nil
	l.base.merge(g)
	g.tasks, g.lines = tasks, lines
	l.project.add(lines, tasks, l.journal.Head())
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
