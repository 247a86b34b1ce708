package ledger

import (
	"context"
	"fmt"
	"strings"

	"mailboxd/internal/decisions/task"
)

const conversationColumns = "task, message, thread, trace, tie, told, open, rounds"

func scanTalk(r row) (t task.Conversation, err error) {
	err = r.Scan(&t.Task, &t.Message, &t.Thread, &t.Trace, &t.Tie, &t.Notified, &t.Open, &t.Rounds)
	return t, err
}

// StartConversation records the Conversation of a task that was just added.
func (tx *Tx) StartConversation(t task.Conversation) error {
	_, err := tx.exec("INSERT INTO talks ("+conversationColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		t.Task, t.Message, t.Thread, t.Trace, string(t.Tie), t.Notified, t.Open, t.Rounds)
	if err != nil {
		return fmt.Errorf("record the conversation of task %d: %w", t.Task, err)
	}
	return nil
}

// MarkNotified records up to which event the requester of a task was notified, and
// whether there may be more.
func (tx *Tx) MarkNotified(task, event int64, open bool) error {
	_, err := tx.exec("UPDATE talks SET told = ?, open = ? WHERE task = ?", event, open, task)
	if err != nil {
		return fmt.Errorf("record the notification of task %d: %w", task, err)
	}
	return nil
}

// SendBack counts that the overseer of a task has sent it back once more, and
// returns how often it has. A task without a Conversation is ErrUnknown.
func (tx *Tx) SendBack(task int64) (rounds int, err error) {
	rounds, ok, err := changed(tx, one[int], "UPDATE talks SET rounds = rounds + 1 WHERE task = ? RETURNING rounds", task)
	if err == nil && !ok {
		err = ErrUnknown
	}
	if err != nil {
		return 0, fmt.Errorf("count the rounds of task %d: %w", task, err)
	}
	return rounds, nil
}

const talkQuery = "SELECT " + conversationColumns + " FROM talks WHERE task = ?"

// Conversation returns the conversation of a task, and whether there is one.
func (tx *Tx) Conversation(task int64) (task.Conversation, bool, error) {
	return conversation(context.Background(), tx.write, task)
}

// Conversation returns the conversation of a task, and whether there is one.
func (r *Reader) Conversation(ctx context.Context, task int64) (task.Conversation, bool, error) {
	return conversation(ctx, r.read, task)
}

func conversation(ctx context.Context, s *statements, seq int64) (task.Conversation, bool, error) {
	t, ok, err := first(ctx, s, scanTalk, talkQuery, seq)
	if err != nil {
		return task.Conversation{}, false, fmt.Errorf("look up the conversation of task %d: %w", seq, err)
	}
	return t, ok, nil
}

const openTalksQuery = "SELECT task FROM talks WHERE open = 1 ORDER BY task"

// Reasons are names with commas between. Of a conversation that goes on for ever
// the latest tasks say who asks in it.
const (
	speechlessQuery = "SELECT " + taskColumns + ` FROM tasks WHERE seq IN (SELECT task FROM talks WHERE thread = ? AND thread <> '')
		AND latest = 1 AND state = 'held' AND agent = ? AND (reasons LIKE '%children%' OR reasons LIKE '%reply%') ORDER BY seq`
	askedInQuery = `SELECT 1 FROM tasks WHERE requester = ?2
		AND seq IN (SELECT task FROM talks WHERE thread = ?1 AND thread <> '' ORDER BY task DESC LIMIT 1000) LIMIT 1`
)

// Awaiting returns the tasks of a conversation that wait for a message to their
// agent, or for others to end, the oldest first.
func (tx *Tx) Awaiting(thread, agent string) ([]task.Task, error) {
	tasks, err := all(context.Background(), tx.write, scanTask, speechlessQuery, thread, agent)
	if err != nil {
		return nil, fmt.Errorf("list tasks of thread %s: %w", thread, err)
	}
	return tasks, nil
}

// IsRequesterIn reports whether a name is the requester of one of the latest thousand tasks
// of a conversation.
func (tx *Tx) IsRequesterIn(thread, requester string) (bool, error) {
	_, asked, err := first(context.Background(), tx.write, one[int], askedInQuery, thread, requester)
	if err != nil {
		return false, fmt.Errorf("look up who asked in thread %s: %w", thread, err)
	}
	return asked, nil
}

// WithOpenNotifications returns the tasks whose requester may have to be notified, the
// oldest first.
func (r *Reader) WithOpenNotifications(ctx context.Context) ([]int64, error) {
	open, err := all(ctx, r.read, one[int64], openTalksQuery)
	if err != nil {
		return nil, fmt.Errorf("list open talks: %w", err)
	}
	return open, nil
}

const linkedTasksQuery = "SELECT task FROM talks WHERE thread = ? AND thread <> '' UNION SELECT task FROM talks WHERE trace = ? AND trace <> '' ORDER BY task"

// LinkedTasks returns the Seqs of the tasks that are part of a conversation or of a chain of work, the
// oldest first; "" names none.
func (r *Reader) LinkedTasks(ctx context.Context, thread, trace string) ([]int64, error) {
	tasks, err := all(ctx, r.read, one[int64], linkedTasksQuery, thread, trace)
	if err != nil {
		return nil, fmt.Errorf("list tasks of thread %q or trace %q: %w", thread, trace, err)
	}
	return tasks, nil
}

var offspringQuery = "SELECT " + childColumns + " FROM tasks t LEFT JOIN talks k ON k.task = t.seq " +
	"WHERE t.parent = ? AND t.parent <> 0 AND t.latest = 1 ORDER BY t.seq"

// childColumns are those scanChild reads.
var childColumns = "coalesce(k.tie, ''), t." + strings.ReplaceAll(taskColumns, ", ", ", t.")

func scanChild(r row) (c task.Child, err error) {
	c.Task, err = scanTask(prefixed{r, &c.Tie})
	return c, err
}

// prefixed is a row that has a column before those that are asked for.
type prefixed struct {
	row
	first any
}

func (p prefixed) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

// Dependents returns the tasks that belong to a task, in the latest revision of
// each, the oldest first.
func (tx *Tx) Dependents(task int64) ([]task.Child, error) {
	return offspring(context.Background(), tx.write, task)
}

// Dependents returns the tasks that belong to a task, in the latest revision of
// each, the oldest first.
func (r *Reader) Dependents(ctx context.Context, task int64) ([]task.Child, error) {
	return offspring(ctx, r.read, task)
}

func offspring(ctx context.Context, s *statements, task int64) ([]task.Child, error) {
	children, err := all(ctx, s, scanChild, offspringQuery, task)
	if err != nil {
		return nil, fmt.Errorf("list what belongs to task %d: %w", task, err)
	}
	return children, nil
}
