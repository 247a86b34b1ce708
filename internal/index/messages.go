package index

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

const selectMessages = "SELECT " + messageColumns + " FROM messages "

// Of those that a task has children, each is looked up by its own index, which has no part
// in an OR.
const (
	idQuery           = selectMessages + "WHERE message = ? AND message <> '' ORDER BY seq"
	hashQuery         = selectMessages + "WHERE hash = ? ORDER BY seq LIMIT 1"
	repliesQuery      = selectMessages + "WHERE cause = ? AND cause <> '' ORDER BY seq"
	dueQuery          = selectMessages + "WHERE inbox <> '' AND delivered IS NULL AND seq > ? ORDER BY seq LIMIT ?"
	conversationQuery = selectMessages + `WHERE task IN (SELECT ?1 UNION ALL SELECT seq FROM tasks WHERE parent = ?1 AND parent <> 0) AND task <> 0
		ORDER BY seq`
	aboutQuery     = selectMessages + "WHERE task = ? AND task <> 0 ORDER BY seq"
	threadQuery    = selectMessages + "WHERE thread = ? AND thread <> '' ORDER BY seq"
	traceQuery     = selectMessages + "WHERE trace = ? AND trace <> '' ORDER BY seq"
	cancelledQuery = selectMessages + "WHERE act = ? AND task <> 0 AND task IN (SELECT seq FROM tasks WHERE state <> 'done') ORDER BY seq"
)

// MessagesWithID returns the messages of an id, the oldest first, without their bodies.
func (r *Reader) MessagesWithID(ctx context.Context, id string) ([]Message, error) {
	return list(ctx, r, scanMessage, "messages with id "+id, idQuery, id)
}

// MessagesWithHash returns the oldest message of a content, without its body.
func (r *Reader) MessagesWithHash(ctx context.Context, hash string) ([]Message, error) {
	return list(ctx, r, scanMessage, "messages with hash "+hash, hashQuery, hash)
}

// RepliesTo returns the messages that reply to the one of an id, without their bodies.
func (r *Reader) RepliesTo(ctx context.Context, cause string) ([]Message, error) {
	return list(ctx, r, scanMessage, "replies to "+cause, repliesQuery, cause)
}

// MessagesAround returns the messages about a task and those below it, without their bodies.
func (r *Reader) MessagesAround(ctx context.Context, seq int64) ([]Message, error) {
	return list(ctx, r, scanMessage, fmt.Sprintf("messages about task %d", seq), conversationQuery, seq)
}

// Message returns the message with this Seq, without its body.
func (r *Reader) Message(ctx context.Context, seq int64) (Message, bool, error) {
	return first(ctx, r.read, scanMessage, selectMessages+"WHERE seq = ?", seq)
}

// AnyMessageWithID returns the oldest message of that id, those of the daemon among them, and
// whether there is one.
func (r *Reader) AnyMessageWithID(ctx context.Context, id string) (task.Message, bool, error) {
	m, err := r.messages(ctx, "with id "+id, idQuery+" LIMIT 1", id)
	if err != nil || len(m) == 0 {
		return task.Message{}, false, err
	}
	return m[0], true, nil
}

// Cancelled returns the messages that are to cancel tasks which are not done, the oldest
// first.
func (r *Reader) Cancelled(ctx context.Context) ([]task.Message, error) {
	return r.messages(ctx, "that cancel tasks", cancelledQuery, string(envelope.Cancels))
}

// Due returns up to limit messages after a Seq that are still to be appended to an inbox,
// the oldest first.
func (r *Reader) Due(ctx context.Context, after int64, limit int) ([]task.Message, error) {
	return r.messages(ctx, "that are due", dueQuery, after, limit)
}

// ConversationMessages returns the messages to and by the agent of a task, about it and about
// the tasks below it, the oldest first. Messages that the daemon sends for the agent are left
// out.
func (r *Reader) ConversationMessages(ctx context.Context, t task.Task) ([]task.Message, error) {
	around, err := r.messages(ctx, "about task "+string(t.ID), conversationQuery, t.Seq)
	return slices.DeleteFunc(around, func(m task.Message) bool {
		return m.To != t.Agent && (m.From != t.Agent || m.Via == task.ByDaemon)
	}), err
}

// About returns the messages about a task, the oldest first.
func (r *Reader) About(ctx context.Context, task int64) ([]task.Message, error) {
	return r.messages(ctx, fmt.Sprintf("about task %d", task), aboutQuery, task)
}

// Thread returns the messages of a conversation, the oldest first.
func (r *Reader) Thread(ctx context.Context, thread string) ([]task.Message, error) {
	return r.messages(ctx, "of thread "+thread, threadQuery, thread)
}

// Trace returns the messages of a chain of work, the oldest first.
func (r *Reader) Trace(ctx context.Context, trace string) ([]task.Message, error) {
	return r.messages(ctx, "of trace "+trace, traceQuery, trace)
}

// messages returns messages with their bodies.
func (r *Reader) messages(ctx context.Context, which, query string, args ...any) ([]task.Message, error) {
	stored, err := list(ctx, r, scanMessage, "messages "+which, query, args...)
	var found []task.Message
	for _, m := range stored {
		if err == nil && m.Place != (Place{}) {
			m.Body, err = r.Body(m.Place)
		}
		found = append(found, m.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("read messages %s: %w", which, err)
	}
	return found, nil
}

// Conversation returns the conversation of a task, and whether there is one.
func (r *Reader) Conversation(ctx context.Context, seq int64) (task.Conversation, bool, error) {
	c, ok, err := first(ctx, r.read, scanConversation, "SELECT "+conversationColumns+" FROM conversations WHERE task = ?", seq)
	if err != nil {
		return task.Conversation{}, false, fmt.Errorf("read conversation of task %d: %w", seq, err)
	}
	return c, ok, nil
}

// WithOpenNotifications returns the tasks whose requesters may have to be notified, the
// oldest first.
func (r *Reader) WithOpenNotifications(ctx context.Context) ([]int64, error) {
	return list(ctx, r, one[int64], "open notifications", "SELECT task FROM conversations WHERE open = 1 ORDER BY task")
}

// ThreadTasks returns the Seqs of the tasks that are part of a conversation, the oldest
// first.
func (r *Reader) ThreadTasks(ctx context.Context, thread string) ([]int64, error) {
	return list(ctx, r, one[int64], "tasks of thread "+thread, "SELECT task FROM conversations WHERE thread = ? AND thread <> '' ORDER BY task", thread)
}

// TraceTasks returns the Seqs of the tasks that are part of a chain of work, the oldest
// first.
func (r *Reader) TraceTasks(ctx context.Context, trace string) ([]int64, error) {
	return list(ctx, r, one[int64], "tasks of trace "+trace, "SELECT task FROM conversations WHERE trace = ? AND trace <> '' ORDER BY task", trace)
}

// Requested reports whether a requester has requested one of the latest thousand tasks of a
// conversation.
func (r *Reader) Requested(ctx context.Context, thread, requester string) (bool, error) {
	_, found, err := first(ctx, r.read, one[int], `SELECT 1 FROM tasks t JOIN
		(SELECT task FROM conversations WHERE thread = ?1 AND thread <> '' ORDER BY task DESC LIMIT 1000) k ON k.task = t.seq
		WHERE t.requester = ?2 LIMIT 1`, thread, requester)
	if err != nil {
		return false, fmt.Errorf("look up the requesters of thread %s: %w", thread, err)
	}
	return found, nil
}

// selectEvents has no join, of which SQLite would make a table where a Tail has views.
const selectEvents = "SELECT e.seq, e.time, e.kind, coalesce((SELECT id FROM tasks WHERE seq = e.task), ''), " +
	"coalesce((SELECT revision FROM tasks WHERE seq = e.task), 0), e.data FROM events e "

func scanEvent(r row) (e task.Event, err error) {
	err = r.Scan(&e.Seq, stamp{&e.Time}, &e.Kind, &e.Task, &e.Revision, (*[]byte)(&e.Data))
	return e, err
}

// Events returns up to limit events after afterSeq, oldest first: those of one task with all
// its revisions, or all events when id is "".
func (r *Reader) Events(ctx context.Context, id envelope.ID, afterSeq int64, limit int) ([]task.Event, error) {
	if id == "" {
		return list(ctx, r, scanEvent, "events",
			selectEvents+"WHERE e.seq > ? ORDER BY e.seq LIMIT ?", afterSeq, limit)
	}
	return list(ctx, r, scanEvent, "events of "+string(id),
		selectEvents+"WHERE e.task IN (SELECT seq FROM tasks WHERE id = ?) AND e.seq > ? ORDER BY e.seq LIMIT ?", string(id), afterSeq, limit)
}

// Story returns the latest events of a task, up to limit, oldest first.
func (r *Reader) Story(ctx context.Context, id envelope.ID, limit int) ([]task.Event, error) {
	events, err := list(ctx, r, scanEvent, "events of "+string(id),
		selectEvents+"WHERE e.task IN (SELECT seq FROM tasks WHERE id = ?) ORDER BY e.seq DESC LIMIT ?", string(id), limit)
	slices.Reverse(events)
	return events, err
}

// EventsSince returns the events of one revision after a number, oldest first.
func (r *Reader) EventsSince(ctx context.Context, seq, after int64) ([]task.Event, error) {
	return list(ctx, r, scanEvent, fmt.Sprintf("events of task %d", seq),
		selectEvents+"WHERE e.task = ? AND e.task IS NOT NULL AND e.seq > ? ORDER BY e.seq", seq, after)
}

// LastEvent returns the number of the newest event; 0 when there is none.
func (r *Reader) LastEvent(ctx context.Context) (int64, error) {
	seq, _, err := first(ctx, r.read, one[int64], "SELECT seq FROM events ORDER BY seq DESC LIMIT 1")
	if err != nil {
		return 0, fmt.Errorf("look up the last event: %w", err)
	}
	return seq, nil
}

// over is a task, t, that is done and needs nothing any more: its requester was notified, and
// its parent does not need its answer.
const over = `t.state = 'done' AND t.put = 1 AND t.delivered = 1 AND t.replaces = 0
		AND NOT EXISTS (SELECT 1 FROM conversations k WHERE k.task = t.seq AND k.open = 1)
		AND (t.parent = 0 OR NOT EXISTS (SELECT 1 FROM tasks p WHERE p.seq = t.parent AND p.state <> 'done'))`

// delivered are the messages about tasks that are over, or about none, whose lines are in
// their inboxes.
const delivered = `(inbox = '' OR delivered IS NOT NULL) AND
		(task = 0 OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = messages.task AND ` + over + `))`

const eventOver = "(task IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = events.task AND " + over + "))"

const bodiesOver = "(t.request <> '' OR t.result <> '') AND t.finished < ? AND " + over

// AgedBodies returns up to limit tasks after afterSeq that have bodies and were over before
// a time.
func (r *Reader) AgedBodies(ctx context.Context, before time.Time, afterSeq int64, limit int) ([]task.Task, error) {
	return list(ctx, r, scanTask, "old tasks", "SELECT "+taskColumns+" FROM tasks t WHERE "+bodiesOver+" AND t.seq > ? ORDER BY t.seq LIMIT ?",
		before.UnixMicro(), afterSeq, limit)
}

// AgedEvents returns up to limit events after afterSeq from before a time, of tasks that are
// over or of no task.
func (r *Reader) AgedEvents(ctx context.Context, before time.Time, afterSeq int64, limit int) ([]int64, error) {
	return list(ctx, r, one[int64], "old events", "SELECT seq FROM events WHERE seq > ? AND time < ? AND "+eventOver+" ORDER BY seq LIMIT ?",
		afterSeq, before.UnixMicro(), limit)
}

// AgedMessages returns up to limit messages after afterSeq from before a time, about tasks
// that are over or about none. Messages that are still to be appended to an inbox stay.
func (r *Reader) AgedMessages(ctx context.Context, before time.Time, afterSeq int64, limit int) ([]int64, error) {
	return list(ctx, r, one[int64], "old messages", "SELECT seq FROM messages WHERE seq > ? AND time < ? AND "+delivered+" ORDER BY seq LIMIT ?",
		afterSeq, before.UnixMicro(), limit)
}

// Aged is how much retention would drop.
type Aged struct{ Bodies, Events, Messages int }

// CountOver returns how much retention would drop. It reads done tasks, so it takes time.
func (r *Reader) CountOver(ctx context.Context, before time.Time) (aged Aged, err error) {
	for _, count := range []struct {
		of    *int
		query string
	}{
		{&aged.Bodies, "SELECT count(*) FROM tasks t WHERE " + bodiesOver},
		{&aged.Events, "SELECT count(*) FROM events WHERE time < ? AND " + eventOver},
		{&aged.Messages, "SELECT count(*) FROM messages WHERE time < ? AND " + delivered},
	} {
		if *count.of, _, err = first(ctx, r.read, one[int], count.query, before.UnixMicro()); err != nil {
			return Aged{}, fmt.Errorf("count old rows: %w", err)
		}
	}
	return aged, nil
}
