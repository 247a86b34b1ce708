package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const treeRunQuery = "SELECT run FROM trees WHERE id = ?"

// SetRun records the run of the tree that a task without a parent begins. The run of an
// unrecorded tree is the id of its first task.
func (tx *Tx) SetRun(first envelope.ID, run string) error {
	if run == "" || run == string(first) {
		return nil
	}
	if _, err := tx.exec("INSERT INTO trees (id, run) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET run = excluded.run", string(first), run); err != nil {
		return fmt.Errorf("record the run of task %s: %w", first, err)
	}
	return nil
}

// RunOf returns the run of a task's tree.
func (tx *Tx) RunOf(t task.Task) (string, error) {
	for t.Parent != 0 {
		parent, found, err := tx.Task(t.Parent)
		if err != nil {
			return "", err
		}
		if !found {
			break
		}
		t = parent
	}
	return treeRun(background, tx.write, t)
}

// RunOf returns the run of a task's tree.
func (r *Reader) RunOf(ctx context.Context, t task.Task) (string, error) {
	for t.Parent != 0 {
		parent, err := r.Task(ctx, t.Parent)
		if err != nil {
			return "", err
		}
		t = parent
	}
	return treeRun(ctx, r.read, t)
}

// treeRun returns the run of the tree that a task begins. The trees of AINL requests are not
// recorded.
func treeRun(ctx context.Context, s *statements, t task.Task) (string, error) {
	if t.Dialect == envelope.AINL || t.Dialect == "" {
		return string(t.ID), nil
	}
	run, recorded, err := first(ctx, s, one[string], treeRunQuery, string(t.ID))
	if err != nil {
		return "", fmt.Errorf("look up the run of task %s: %w", t.ID, err)
	}
	if !recorded {
		run = string(t.ID)
	}
	return run, nil
}

// The first part finds the trees that are recorded under the run, the second the tree whose
// first task has its name.
const inRunQuery = "WITH RECURSIVE below (seq) AS (" +
	"SELECT t.seq FROM trees r JOIN tasks t ON t.id = r.id WHERE r.run = ?1 AND t.parent = 0" +
	" UNION SELECT t.seq FROM tasks t LEFT JOIN trees r ON r.id = t.id WHERE t.id = ?1 AND t.parent = 0 AND r.id IS NULL" +
	" UNION SELECT t.seq FROM tasks t JOIN below b ON t.parent = b.seq WHERE t.parent <> 0)" +
	" SELECT " + taskColumns + " FROM tasks WHERE seq IN (SELECT seq FROM below) ORDER BY seq"

// InRun returns a run and all revisions of its tasks, the oldest first. A run is named by its run_id, or by one of its
// tasks; without such a run, the error wraps ErrUnknown.
func (r *Reader) InRun(ctx context.Context, name string) (run string, tasks []task.Task, err error) {
	defer wrap(&err, "run %s", name)
	if tasks, err = all(ctx, r.read, scanTask, inRunQuery, name); err != nil || len(tasks) > 0 {
		return name, tasks, err
	}
	revisions, err := r.Revisions(ctx, envelope.ID(name))
	if err == nil && len(revisions) == 0 {
		err = ErrUnknown
	}
	if err == nil {
		run, err = r.RunOf(ctx, revisions[len(revisions)-1])
	}
	if err == nil {
		tasks, err = all(ctx, r.read, scanTask, inRunQuery, run)
	}
	return run, tasks, err
}
