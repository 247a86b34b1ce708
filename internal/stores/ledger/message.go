package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const messageColumns = "seq, time, dialect, act, message, cause, task, thread, trace, sender, recipient, via, hash, lost, inbox, posted, body"

const selectMessages = "SELECT " + messageColumns + " FROM messages "

func scanMessage(r row) (m task.Message, err error) {
	var lost string
	err = r.Scan(&m.Seq, stamp{&m.Time}, &m.Dialect, &m.Act, &m.ID, &m.Cause, &m.Task, &m.Thread, &m.Trace, &m.From, &m.To,
		&m.Via, &m.Hash, &lost, &m.Inbox, stamp{&m.Delivered}, &m.Body)
	if m.Act == envelope.Act(task.KindToolCalled) { // of an earlier mailboxd; that is an event of another kind now
		m.Act = envelope.Calls
	}
	if lost != "" {
		m.Lost = strings.Split(lost, ",")
	}
	return m, err
}

// Record stores a message and returns its Seq. Seq and Delivered of m are
// ignored: a message that has an Inbox is due from then on.
func (tx *Tx) Record(m task.Message) (seq int64, err error) {
	if m.Body == nil {
		m.Body = []byte{} // a column for bytes, not for NULL
	}
	result, err := tx.exec(`INSERT INTO messages (time, dialect, act, message, cause, task, thread, trace, sender, recipient, via, hash, lost, inbox, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, m.Time.UnixMicro(), string(m.Dialect), string(m.Act), m.ID, m.Cause, m.Task,
		m.Thread, m.Trace, m.From, m.To, string(m.Via), m.Hash, strings.Join(m.Lost, ","), m.Inbox, m.Body)
	if err == nil {
		seq, err = result.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("record a message of %q: %w", m.From, err)
	}
	return seq, nil
}

// Message returns a message by its Seq; ErrUnknown when there is none.
func (r *Reader) Message(ctx context.Context, seq int64) (task.Message, error) {
	m, err := r.messages(ctx, fmt.Sprintf("number %d", seq), messageQuery, seq)
	if err == nil && len(m) == 0 {
		err = fmt.Errorf("message %d %w", seq, ErrUnknown)
	}
	if err != nil {
		return task.Message{}, err
	}
	return m[0], nil
}

const messageQuery = selectMessages + "WHERE seq = ?"

// MarkDelivered records that the line of a message is in its inbox.
func (tx *Tx) MarkDelivered(seq int64, at time.Time) error {
	if _, err := tx.exec("UPDATE messages SET posted = ? WHERE seq = ?", micros(at), seq); err != nil {
		return fmt.Errorf("mark message %d posted: %w", seq, err)
	}
	return nil
}

const (
	namedQuery   = selectMessages + "WHERE message = ? AND message <> '' AND via <> 'daemon' ORDER BY seq LIMIT 1"
	saidQuery    = selectMessages + "WHERE hash = ? ORDER BY seq LIMIT 1"
	repliesQuery = selectMessages + "WHERE cause = ? AND cause <> '' AND act = ? AND sender = ? AND time >= ? ORDER BY seq"
)

// MessageWithID returns the oldest message with an id that mailboxd did not write, and
// whether there is one (CLOWL-37).
func (tx *Tx) MessageWithID(id string) (task.Message, bool, error) {
	return tx.message("look up message "+id, namedQuery, id)
}

const anyNamedQuery = selectMessages + "WHERE message = ? AND message <> '' ORDER BY seq LIMIT 1"

// AnyMessageWithID returns the oldest message with an id, also one of mailboxd, and whether
// there is one.
func (tx *Tx) AnyMessageWithID(id string) (task.Message, bool, error) {
	return tx.message("look up message "+id, anyNamedQuery, id)
}

// AnyMessageWithID returns the oldest message with an id, also one of mailboxd, and whether
// there is one.
func (r *Reader) AnyMessageWithID(ctx context.Context, id string) (task.Message, bool, error) {
	m, err := r.messages(ctx, "named "+id, anyNamedQuery, id)
	if err != nil || len(m) == 0 {
		return task.Message{}, false, err
	}
	return m[0], true, nil
}

const cancelledQuery = selectMessages + "WHERE act = ? AND task <> 0 AND task IN (SELECT seq FROM tasks WHERE state <> 'done') ORDER BY seq"

// Cancelled returns the messages that are to cancel tasks which are not done, the
// oldest first.
func (r *Reader) Cancelled(ctx context.Context) ([]task.Message, error) {
	return r.messages(ctx, "that cancel tasks", cancelledQuery, string(envelope.Cancels))
}

// MessageWithHash returns the oldest message of that content, and whether there is one.
func (tx *Tx) MessageWithHash(hash string) (task.Message, bool, error) {
	return tx.message("look up what was said", saidQuery, hash)
}

// Replies returns the messages of an act that reply to the named one, at or after an
// instant, the oldest first.
func (tx *Tx) Replies(cause string, act envelope.Act, from string, since time.Time) ([]task.Message, error) {
	messages, err := all(context.Background(), tx.write, scanMessage, repliesQuery, cause, string(act), from, since.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("list replies to %s: %w", cause, err)
	}
	return messages, nil
}

func (tx *Tx) message(what, query string, args ...any) (task.Message, bool, error) {
	m, ok, err := first(context.Background(), tx.write, scanMessage, query, args...)
	if err != nil {
		return task.Message{}, false, fmt.Errorf("%s: %w", what, err)
	}
	return m, ok, nil
}

// The tasks that belong to one are looked up by their own index, which has no
// part in an OR.
const (
	dueQuery          = selectMessages + "WHERE inbox <> '' AND posted IS NULL AND seq > ? ORDER BY seq LIMIT ?"
	conversationQuery = selectMessages + `WHERE task IN (SELECT ?1 UNION ALL SELECT seq FROM tasks WHERE parent = ?1 AND parent <> 0) AND task <> 0
		AND (recipient = ?2 OR sender = ?2 AND via <> 'daemon') ORDER BY seq`
	aboutQuery  = selectMessages + "WHERE task = ? AND task <> 0 ORDER BY seq"
	threadQuery = selectMessages + "WHERE thread = ? AND thread <> '' ORDER BY seq"
	traceQuery  = selectMessages + "WHERE trace = ? AND trace <> '' ORDER BY seq"
)

// Due returns up to limit messages after a Seq that are still to be put into an
// inbox, the oldest first.
func (r *Reader) Due(ctx context.Context, after int64, limit int) ([]task.Message, error) {
	return r.messages(ctx, "due", dueQuery, after, limit)
}

// ConversationMessages returns the messages to and from the agent of a task, about it and
// about the tasks that belong to it, the oldest first. It leaves out the messages that
// mailboxd wrote for the agent.
func (r *Reader) ConversationMessages(ctx context.Context, t task.Task) ([]task.Message, error) {
	return r.messages(ctx, "about task "+string(t.ID), conversationQuery, t.Seq, t.Agent)
}

// About returns the messages about a task, the oldest first.
func (r *Reader) About(ctx context.Context, task int64) ([]task.Message, error) {
	return r.messages(ctx, fmt.Sprintf("about task %d", task), aboutQuery, task)
}

// LinkedMessages returns the messages of a conversation or of a chain of work, the oldest first; ""
// names none.
func (r *Reader) LinkedMessages(ctx context.Context, thread, trace string) ([]task.Message, error) {
	if trace != "" {
		return r.messages(ctx, "of trace "+trace, traceQuery, trace)
	}
	return r.messages(ctx, "of thread "+thread, threadQuery, thread)
}

func (r *Reader) messages(ctx context.Context, which, query string, args ...any) ([]task.Message, error) {
	messages, err := all(ctx, r.read, scanMessage, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list messages %s: %w", which, err)
	}
	return messages, nil
}
