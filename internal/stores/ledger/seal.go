package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
	"mailboxd/internal/testtools/fault"
)

// SealWith has all events sealed from now on, and those before now: at each 1,000, and by Seal.
func (l *Ledger) SealWith(ctx context.Context, w seal.Writer) error {
	return l.Update(ctx, func(tx *Tx) error {
		tx.write.wrote, tx.seals, tx.seals.Stale = true, w, true
		return tx.loadSeals()
	})
}

// Seal seals the events that no seal covers.
func (l *Ledger) Seal(ctx context.Context) error {
	return l.Update(ctx, func(tx *Tx) error { return cmp.Or(tx.saveEvents(), tx.seal()) })
}

// sealed takes over what a committed transaction sealed.
func (w *writer) sealed(s seal.Writer) {
	before := w.seals.Head.Last
	w.seals = s
	if s.Sealed != nil && s.Head.Last > before {
		fault.Point("sealed")
		s.Sealed()
	}
}

// loadSeals reads the head and the events after it, unless they are known, and seals each 1,000 of them.
func (tx *Tx) loadSeals() error {
	if tx.seals.Signer == nil || !tx.seals.Stale {
		return nil
	}
	head, sealed, err := first(background, tx.write, scanSeal, sealsQuery+" ORDER BY first DESC LIMIT 1")
	restored := false
	if err = cmp.Or(err, tx.saveEvents()); err == nil {
		restored, _, err = first(background, tx.write, one[bool],
			"SELECT count(*) > 0 FROM events WHERE seq > ? AND kind = '"+string(task.KindLedgerRestored)+"'", head.Last)
	}
	tx.seals.Start(head, restored || !sealed)
	for n := seal.Many; n == seal.Many && err == nil; {
		var page []seal.Item
		page, err = all(background, tx.write, scanItem, hashedEvents+" WHERE events.seq > ? ORDER BY events.seq LIMIT ?", tx.seals.Last(), seal.Many)
		for _, item := range page {
			tx.seals.Add(item)
		}
		n, err = len(page), cmp.Or(err, tx.sealMany())
	}
	return err
}

// hashEvents takes events for the next seal that a statement added one after the other.
func (tx *Tx) hashEvents(added sql.Result, events ...task.Event) error {
	if !tx.seals.Counts() {
		return nil
	}
	last, err := added.LastInsertId()
	for i := 0; i < len(events) && err == nil; i++ {
		e := events[i]
		if e.Of != 0 {
			var of task.Task
			of, _, err = tx.Task(e.Of)
			e.Task, e.Revision = of.ID, of.Revision
		}
		stored := seal.Event{
			Seq: last - int64(len(events)-1-i), Time: e.Time.UnixMicro(), Kind: string(e.Kind), Task: string(e.Task), Revision: int64(e.Revision), Data: e.Data,
		}
		tx.seals.Add(seal.Item{Seq: stored.Seq, Hash: stored.Hash()})
	}
	return err
}

// sealMany seals what is many events. An error of the signer is left to Seal, which tries again and returns it.
func (tx *Tx) sealMany() error {
	if tx.seals.IsDue() {
		_ = tx.seal()
	}
	return tx.write.failed
}

// seal seals all events after the head.
func (tx *Tx) seal() error {
	s, made, err := tx.seals.Make(time.Now().UnixMicro())
	if !made || err != nil {
		return err
	}
	fault.Point("seal-signed")
	_, err = tx.exec("INSERT INTO seals (first, last, previous, hash, time, key, signature) VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.First, s.Last, s.Previous[:], s.Hash[:], s.Time, s.Key, s.Signature)
	return err
}

// mayPrune reports whether events may be removed: they are sealed and a record can be signed, or nothing is sealed here.
func (tx *Tx) mayPrune() bool {
	if tx.seals.Signer != nil {
		return cmp.Or(tx.saveEvents(), tx.seal()) == nil && tx.seals.Head.Last > 0
	}
	sealed, _, err := first(background, tx.write, one[bool], "SELECT count(*) > 0 FROM seals")
	return err == nil && !sealed
}

// prune keeps the seqs and hashes of the events that DropEvents is about to remove, and adds a signed record. A range
// that is all removed keeps only its seal.
func (tx *Tx) prune(from, to int64, before time.Time) error {
	if tx.seals.Signer == nil {
		return nil
	}
	items, err := all(background, tx.write, scanItem,
		hashedEvents+" WHERE events.seq >= ? AND events.seq < ? AND events.time < ? AND "+eventOver+" ORDER BY events.seq", from, to, before.UnixMicro())
	if err != nil || len(items) == 0 {
		return err
	}
	p, err := tx.seals.Prune(items, time.Now().UnixMicro())
	if err != nil {
		return err
	}
	for _, item := range items {
		if _, err := tx.exec("INSERT INTO pruned (seq, hash) VALUES (?, ?)", item.Seq, item.Hash[:]); err != nil {
			return err
		}
	}
	if _, err := tx.exec("INSERT INTO prunes (seqs, head, time, key, signature) VALUES (?, ?, ?, ?, ?)",
		p.Seqs.String(), p.Head[:], p.Time, p.Key, p.Signature); err != nil {
		return fmt.Errorf("add record of removed events: %w", err)
	}
	ranges, err := all(background, tx.write, scanSeal,
		sealsQuery+" WHERE first >= (SELECT coalesce(max(first), 0) FROM seals WHERE first <= ?) AND first < ?", from, to)
	for _, s := range ranges {
		_, err = tx.exec(`DELETE FROM pruned WHERE seq BETWEEN ?1 AND ?2 AND
			(SELECT count(*) FROM pruned WHERE seq BETWEEN ?1 AND ?2) = ?2 - ?1 + 1`, s.First, s.Last)
		if err != nil {
			return err
		}
	}
	return err
}
