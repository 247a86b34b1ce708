package ledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"mailboxd/internal/decisions/task"
)

// A task that needs some of a budget waits for it if it is held for nothing else, or was woken and is
// in the queue.
const waitingQuery = `SELECT w.task, t.state, w.reason, w.key, w.needs FROM waits w JOIN tasks t ON t.seq = w.task
	WHERE w.key = ? AND (t.state = 'held' AND (w.needs = '' OR t.reasons = w.reason) OR t.state = 'queued') ORDER BY w.task`

// upTo is the clause of a limit. SQLite prepares a statement again each time a limit is bound to it.
func upTo(limit int) string { return " LIMIT " + strconv.Itoa(limit) }

// Waiting returns the tasks that wait for what a key names, up to limit, the oldest first.
func (r *Reader) Waiting(ctx context.Context, key task.Key, limit int) ([]task.Waiter, error) {
	waiters, err := all(ctx, r.read, func(r row) (w task.Waiter, err error) {
		return w, r.Scan(&w.Task, &w.State, &w.Reason, &w.Key, &w.Needs)
	}, waitingQuery+upTo(limit), string(key))
	if err != nil {
		return nil, fmt.Errorf("list tasks that wait for %s: %w", key, err)
	}
	return waiters, nil
}

// BudgetsWaitedFor returns the keys of all budgets that tasks wait for.
func (r *Reader) BudgetsWaitedFor(ctx context.Context) ([]task.Key, error) {
	keys, err := all(ctx, r.read, one[task.Key], "SELECT DISTINCT key FROM waits WHERE key >= ? AND key < ?",
		task.BudgetKeys, task.BudgetKeys+"\xff")
	if err != nil {
		return nil, fmt.Errorf("list budgets that tasks wait for: %w", err)
	}
	return keys, nil
}

// The tasks of one time are found by both columns of the index, which they are not with a row value.
const dueTasksQuery = "SELECT seq, due FROM tasks WHERE due = ?1 AND seq > ?2 UNION ALL SELECT seq, due FROM tasks WHERE due > ?1 ORDER BY due, seq"

// DueTasks returns up to limit tasks in the order in which they are looked at again, after another one.
func (r *Reader) DueTasks(ctx context.Context, after task.Look, limit int) ([]task.Look, error) {
	looks, err := all(ctx, r.read, func(r row) (l task.Look, err error) { return l, r.Scan(&l.Task, stamp{&l.At}) },
		dueTasksQuery+upTo(limit), after.At.UnixMicro(), after.Task)
	if err != nil {
		return nil, fmt.Errorf("list tasks that are due: %w", err)
	}
	return looks, nil
}

// Waits returns what wakes a held task, beside its time and a person.
func (r *Reader) Waits(ctx context.Context, seq int64) ([]task.Wait, error) {
	waits, err := all(ctx, r.read, func(r row) (w task.Wait, err error) { return w, r.Scan(&w.Reason, &w.Key, &w.Needs) },
		"SELECT reason, key, needs FROM waits WHERE task = ? ORDER BY reason", seq)
	if err != nil {
		return nil, fmt.Errorf("list what task %d waits for: %w", seq, err)
	}
	return waits, nil
}

// setWaits writes what a task waits for after a move from a state and its reasons. A reason that the
// task keeps keeps its key, and one that is Keyed UntilItRuns also in the queue.
func setWaits(tx *Tx, seq int64, from task.State, reasons []task.Reason, c task.Change) error {
	for _, r := range reasons {
		keyed := r.Facts().Keyed
		if keyed == task.NeverKeyed || slices.Contains(c.Reasons, r) || keyed == task.UntilItRuns && c.To == task.Queued {
			continue
		}
		if _, err := tx.exec("DELETE FROM waits WHERE task = ? AND reason = ?", seq, string(r)); err != nil {
			return err
		}
	}
	if from == task.Queued && c.To != task.Running && c.To != task.Waiting { // a run ends them by EndWaits
		if _, err := tx.EndWaits(seq); err != nil {
			return err
		}
	}
	for _, w := range c.Waits {
		_, err := tx.exec("INSERT INTO waits (task, reason, key, needs) VALUES (?, ?, ?, ?)"+
			" ON CONFLICT (task, reason) DO UPDATE SET key = excluded.key, needs = excluded.needs", seq, string(w.Reason), string(w.Key), w.Needs)
		if err != nil {
			return err
		}
	}
	return nil
}

// EndWaits ends what a task waits for, and reports whether it waited.
func (tx *Tx) EndWaits(seq int64) (waited bool, err error) {
	defer wrap(&err, "end waits of task %d", seq)
	return tx.change("DELETE FROM waits WHERE task = ?", seq)
}
