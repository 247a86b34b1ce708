package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// What is asked about tasks that are held, wait for their agents, or are in review. The condition
// is spelled as the partial index has it, or that would not be used.
const (
	held           = "(state = 'held' OR state = 'waiting' OR state = 'review')"
	heldNamesQuery = "SELECT seq, id FROM tasks WHERE " + held
	heldQuery      = "SELECT " + taskColumns + " FROM tasks WHERE " + held +
		" AND agent = ? AND (-priority, seq) > (?, ?) ORDER BY priority DESC, seq"
	countHeldQuery = "SELECT count(*) FROM tasks WHERE " + held +
		" AND agent = ? AND state = ? AND (? = '' OR instr(',' || reasons || ',', ',' || ? || ',') > 0)"
)

// HeldNames returns the Seqs and the ids of all tasks that are held, wait for their agents, or are in
// review, in no order. It reads only an index: every look at the mailbox asks it.
func (r *Reader) HeldNames(ctx context.Context) (seqs []int64, ids []envelope.ID, err error) {
	ids, err = all(ctx, r.read, func(r row) (id envelope.ID, err error) {
		seqs = append(seqs, 0)
		return id, r.Scan(&seqs[len(seqs)-1], &id)
	}, heldNamesQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("list names of held tasks: %w", err)
	}
	return seqs, ids, nil
}

// Held returns up to limit tasks of an agent that are held, wait for it, or are in review, in the
// order in which they start. It begins after a position.
func (r *Reader) Held(ctx context.Context, agent string, after task.Position, limit int) ([]task.Task, error) {
	tasks, err := all(ctx, r.read, scanTask, heldQuery+upTo(limit), agent, -after.Priority, after.Seq)
	if err != nil {
		return nil, fmt.Errorf("list held tasks of agent %s: %w", agent, err)
	}
	return tasks, nil
}

// CountHeld returns how many tasks of an agent are in a state, which is Held, Waiting or Review, and
// have a reason; "": any.
func (r *Reader) CountHeld(ctx context.Context, agent string, state task.State, reason task.Reason) (int, error) {
	n, _, err := first(ctx, r.read, one[int], countHeldQuery, agent, string(state), string(reason), string(reason))
	if err != nil {
		return 0, fmt.Errorf("count held tasks of agent %s: %w", agent, err)
	}
	return n, nil
}
