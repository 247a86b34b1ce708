package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Command returns the command that a sender gave with an idempotency key in a run, and whether
// there is one.
func (tx *Tx) Command(sender, run, key string) (task.Command, bool, error) {
	c := task.Command{Sender: sender, Run: run, Key: key}
	scan := func(r row) (task.Command, error) { return c, r.Scan(&c.Hash, &c.Task) }
	_, found, err := first(background, tx.write, scan, "SELECT hash, id FROM commands WHERE sender = ? AND run = ? AND key = ?", sender, run, key)
	if err != nil {
		return task.Command{}, false, fmt.Errorf("look up the command %q of %s: %w", key, sender, err)
	}
	return c, found, nil
}

// SetCommand records a command with an idempotency key, and that its task follows no other one.
// It replaces the command before, which was not carried out.
func (tx *Tx) SetCommand(c task.Command) error {
	_, err := tx.exec("INSERT INTO commands (sender, run, key, hash, id) VALUES (?, ?, ?, ?, ?) "+
		"ON CONFLICT (sender, run, key) DO UPDATE SET hash = excluded.hash, id = excluded.id", c.Sender, c.Run, c.Key, c.Hash, string(c.Task))
	if err == nil {
		_, err = tx.exec("DELETE FROM followers WHERE id = ?", string(c.Task))
	}
	if err != nil {
		return fmt.Errorf("record the command %q of %s: %w", c.Key, c.Sender, err)
	}
	return nil
}

// Follow records that a task gets the outcome of another one.
func (tx *Tx) Follow(follower, leader envelope.ID) error {
	if _, err := tx.exec("INSERT INTO followers (id, leader) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET leader = excluded.leader", string(follower), string(leader)); err != nil {
		return fmt.Errorf("record that task %s follows %s: %w", follower, leader, err)
	}
	return nil
}

// Leader returns the task whose outcome a task gets, and whether there is one.
func (r *Reader) Leader(ctx context.Context, follower envelope.ID) (envelope.ID, bool, error) {
	leader, found, err := first(ctx, r.read, one[envelope.ID], "SELECT leader FROM followers WHERE id = ?", string(follower))
	if err != nil {
		return "", false, fmt.Errorf("look up the leader of task %s: %w", follower, err)
	}
	return leader, found, nil
}

const followersQuery = "SELECT " + taskColumns + " FROM tasks WHERE id IN (SELECT id FROM followers WHERE leader = ?) AND latest = 1 AND state <> 'done' ORDER BY seq"

// Followers returns the open tasks that get the outcome of a task, the oldest first.
func (r *Reader) Followers(ctx context.Context, leader envelope.ID) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, followersQuery, string(leader))
	if err != nil {
		return nil, fmt.Errorf("list followers of task %s: %w", leader, err)
	}
	return tasks, nil
}

// MessageHash returns the content of the message with an id in a run, and whether there is one.
// It is known longer than the message.
func (tx *Tx) MessageHash(run, id string) (string, bool, error) {
	hash, found, err := first(background, tx.write, one[string], "SELECT hash FROM message_ids WHERE run = ? AND id = ?", run, id)
	if err != nil {
		return "", false, fmt.Errorf("look up message %s: %w", id, err)
	}
	return hash, found, nil
}

// SetMessageHash records the content of the message with an id in a run. The first content
// stays.
func (tx *Tx) SetMessageHash(run, id, hash string) error {
	if _, err := tx.exec("INSERT INTO message_ids (run, id, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", run, id, hash); err != nil {
		return fmt.Errorf("record message %s: %w", id, err)
	}
	return nil
}
