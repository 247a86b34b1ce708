package ledger

import (
	"context"
	"fmt"
	"time"

	"mailboxd/internal/decisions/task"
)

func scanDelivery(r row) (d task.Delivery, err error) {
	err = r.Scan(stamp{&d.Appended}, stamp{&d.Claimed}, &d.Lease)
	return d, err
}

// Deliver records that a task is to be in the inbox of its agent. A line that
// is there already stays so; a lease does not.
func (tx *Tx) Deliver(task int64) error {
	_, err := tx.exec("INSERT INTO deliveries (task, lease) VALUES (?, '') ON CONFLICT (task) DO UPDATE SET claimed = NULL, lease = ''", task)
	if err != nil {
		return fmt.Errorf("deliver task %d: %w", task, err)
	}
	return nil
}

// MarkAppended records that the line of a task is in the inbox file.
func (tx *Tx) MarkAppended(task int64, at time.Time) error {
	if _, err := tx.exec("UPDATE deliveries SET appended = ? WHERE task = ?", micros(at), task); err != nil {
		return fmt.Errorf("mark task %d appended: %w", task, err)
	}
	return nil
}

// Lease records the holder and the token of the lease of a task that waits, and that
// its run has begun with the first lease.
func (tx *Tx) Lease(t task.Task, token string, at time.Time) error {
	_, err := tx.exec("UPDATE deliveries SET claimed = ?, lease = ? WHERE task = ?", micros(at), token, t.Seq)
	if err == nil {
		delete(tx.runs, task.RunName{Task: t.Seq, Attempt: t.Attempt})
		_, err = tx.exec("UPDATE runs SET started = coalesce(started, ?) WHERE task = ? AND attempt = ?", micros(at), t.Seq, t.Attempt)
	}
	if err != nil {
		return fmt.Errorf("lease task %d: %w", t.Seq, err)
	}
	return nil
}

const deliveryQuery = "SELECT appended, claimed, lease FROM deliveries WHERE task = ?"

// Delivery returns the delivery of a task; zero for a task that was never to be
// delivered.
func (tx *Tx) Delivery(task int64) (task.Delivery, error) {
	return delivery(context.Background(), tx.write, task)
}

// Delivery returns the delivery of a task; zero for a task that was never to be
// delivered.
func (r *Reader) Delivery(ctx context.Context, task int64) (task.Delivery, error) {
	return delivery(ctx, r.read, task)
}

func delivery(ctx context.Context, s *statements, seq int64) (task.Delivery, error) {
	d, _, err := first(ctx, s, scanDelivery, deliveryQuery, seq)
	if err != nil {
		return task.Delivery{}, fmt.Errorf("look up delivery of task %d: %w", seq, err)
	}
	return d, nil
}

// unclaimedQuery spells the first condition as the partial index has it. The plus before agent keeps
// SQLite from the index of held tasks, which has another order.
const unclaimedQuery = "SELECT " + taskColumns + ` FROM tasks WHERE state <> 'done' AND state = 'waiting' AND +agent = ? AND latest = 1
	AND (until IS NULL OR until <= ?) AND (deadline IS NULL OR deadline > ?) ORDER BY seq LIMIT 1`

// Unclaimed returns the oldest task that waits for an agent and has no lease
// at an instant, and whether there is one. One that is too late for its
// deadline, or that a later revision follows, is none.
func (tx *Tx) Unclaimed(agent string, now time.Time) (task.Task, bool, error) {
	t, ok, err := first(context.Background(), tx.write, scanTask, unclaimedQuery, agent, micros(now), micros(now))
	if err != nil {
		return task.Task{}, false, fmt.Errorf("look for a task that waits for %s: %w", agent, err)
	}
	return t, ok, nil
}

const claimedQuery = "SELECT " + taskColumns + ` FROM tasks WHERE state <> 'done' AND state = 'waiting' AND +agent = ?
	AND until > ? ORDER BY seq`

// Claimed returns the tasks that wait for an agent and have a lease at an
// instant, the oldest first.
func (tx *Tx) Claimed(agent string, now time.Time) ([]task.Task, error) {
	claimed, err := all(context.Background(), tx.write, scanTask, claimedQuery, agent, micros(now))
	if err != nil {
		return nil, fmt.Errorf("list what is claimed for %s: %w", agent, err)
	}
	return claimed, nil
}
