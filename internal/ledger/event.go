package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

const eventColumns = "e.seq, e.time, e.kind, coalesce(t.id, ''), coalesce(t.revision, 0), e.data"

// Log adds an event. An event of a revision that is not in the ledger is
// ErrUnknown.
func (tx *Tx) Log(e task.Event) error {
	if err := tx.log(e); err != nil {
		return fmt.Errorf("log %s of task %q: %w", e.Kind, e.Task, err)
	}
	return nil
}

// log keeps a task by its seq: an index over those grows at its end, where
// one over ids is written to all over.
func (tx *Tx) log(e task.Event) error {
	if e.Data == nil {
		e.Data = jsontext.Value("{}")
	}
	if e.Task == "" || e.Of != 0 {
		tx.stage.log(e)
		return nil
	}
	logged, err := tx.change("INSERT INTO events (time, kind, data, task) SELECT ?, ?, ?, seq FROM tasks WHERE id = ? AND revision = ?",
		e.Time.UnixMicro(), e.Kind, string(e.Data), string(e.Task), e.Revision)
	if err == nil && !logged {
		err = ErrUnknown
	}
	return err
}

const lastHeldQuery = "SELECT time FROM events WHERE task = ? AND kind IN ('" + string(task.KindTaskHeld) + "', '" + string(task.KindTaskReleased) + "') ORDER BY seq DESC LIMIT 1"

// HeldSince returns the time since which a revision is held for its reasons of now; false if there
// is no event about that, because it was held as it was accepted.
func (r *Reader) HeldSince(ctx context.Context, seq int64) (time.Time, bool, error) {
	at, found, err := first(ctx, r.read, one[int64], lastHeldQuery, seq)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look up since when task %d is held: %w", seq, err)
	}
	return time.UnixMicro(at).UTC(), found, nil
}

// Events returns up to limit events after afterSeq, oldest first: those of
// one task with all its revisions, or everybody's when id is "".
func (r *Reader) Events(ctx context.Context, id envelope.ID, afterSeq int64, limit int) ([]task.Event, error) {
	query := "SELECT " + eventColumns + " FROM events e LEFT JOIN tasks t ON t.seq = e.task WHERE e.seq > ?1 ORDER BY e.seq LIMIT ?2"
	args := []any{afterSeq, limit}
	if id != "" {
		query = "SELECT " + eventColumns + " FROM tasks t JOIN events e ON e.task = t.seq WHERE e.seq > ?1 AND t.id = ?3 ORDER BY e.seq LIMIT ?2"
		args = append(args, string(id))
	}
	events, err := all(ctx, r.read, scanEvent, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return events, nil
}

const newsQuery = "SELECT " + eventColumns + " FROM events e JOIN tasks t ON t.seq = e.task WHERE e.task = ? AND e.task IS NOT NULL AND e.seq > ? ORDER BY e.seq"

// EventsSince returns the events of one revision of a task after a Seq, oldest first.
func (tx *Tx) EventsSince(task, after int64) ([]task.Event, error) {
	events, err := all(context.Background(), tx.write, scanEvent, newsQuery, task, after)
	if err != nil {
		return nil, fmt.Errorf("list news of task %d: %w", task, err)
	}
	return events, nil
}

// History returns the latest events of a task, up to limit, oldest first.
func (r *Reader) History(ctx context.Context, id envelope.ID, limit int) ([]task.Event, error) {
	events, err := all(ctx, r.read, scanEvent,
		"SELECT "+eventColumns+" FROM tasks t JOIN events e ON e.task = t.seq WHERE t.id = ? ORDER BY e.seq DESC LIMIT ?", string(id), limit)
	if err != nil {
		return nil, fmt.Errorf("list events of %s: %w", id, err)
	}
	slices.Reverse(events)
	return events, nil
}

func scanEvent(r row) (e task.Event, err error) {
	err = r.Scan(&e.Seq, stamp{&e.Time}, &e.Kind, &e.Task, &e.Revision, (*[]byte)(&e.Data))
	return e, err
}
