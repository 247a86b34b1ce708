package ledger

import (
	"context"
	"fmt"
	"slices"

	"mailboxd/internal/decisions/task"
)

// Woken returns the Seqs of the held tasks that wait for what a key names, oldest first.
func (r *Reader) Woken(ctx context.Context, key task.Key) ([]int64, error) {
	seqs, err := all(ctx, r.read, one[int64], "SELECT task FROM waits WHERE key = ? ORDER BY task", string(key))
	if err != nil {
		return nil, fmt.Errorf("list tasks that wait for %s: %w", key, err)
	}
	return seqs, nil
}

// Waits returns what wakes a held task, beside its time and a person.
func (r *Reader) Waits(ctx context.Context, seq int64) ([]task.Wait, error) {
	waits, err := all(ctx, r.read, scanWait, "SELECT reason, key FROM waits WHERE task = ? ORDER BY reason", seq)
	if err != nil {
		return nil, fmt.Errorf("list what task %d waits for: %w", seq, err)
	}
	return waits, nil
}

func scanWait(r row) (w task.Wait, err error) {
	err = r.Scan(&w.Reason, &w.Key)
	return w, err
}

// setWaits writes what a task waits for after a move from some reasons. A reason that the task
// keeps keeps its key.
func setWaits(tx *Tx, seq int64, from []task.Reason, c task.Change) error {
	for _, r := range from {
		if !r.Facts().Keyed || slices.Contains(c.Reasons, r) {
			continue
		}
		if _, err := tx.exec("DELETE FROM waits WHERE task = ? AND reason = ?", seq, string(r)); err != nil {
			return err
		}
	}
	for _, w := range c.Waits {
		_, err := tx.exec("INSERT INTO waits (task, reason, key) VALUES (?, ?, ?) ON CONFLICT (task, reason) DO UPDATE SET key = excluded.key",
			seq, string(w.Reason), string(w.Key))
		if err != nil {
			return err
		}
	}
	return nil
}
