package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const eventColumns = "e.seq, e.time, e.kind, coalesce(t.id, ''), coalesce(t.revision, 0), e.data"

// Log adds an event. An event of a revision that is not in the ledger is
// ErrUnknown.
//
// The row has the task's Seq: an index over Seqs grows at its end, and one over ids grows anywhere.
func (tx *Tx) Log(e task.Event) (err error) {
	defer wrap(&err, "log %s of task %q", e.Kind, e.Task)
	if e.Data == nil {
		e.Data = jsontext.Value("{}")
	}
	if e.Task == "" || e.Of != 0 {
		tx.events = append(tx.events, e)
		tx.write.wrote = true
		return nil
	}
	if err := tx.saveEvents(); err != nil { // they come before it
		return err
	}
	result, err := tx.exec("INSERT INTO events (time, kind, data, task) SELECT ?, ?, ?, seq FROM tasks WHERE id = ? AND revision = ?",
		e.Time.UnixMicro(), string(e.Kind), string(e.Data), string(e.Task), e.Revision)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, ErrUnknown)
	}
	return tx.hashEvents(result, e)
}

// eventSteps are how many events one statement adds. One statement for several takes half as long as one
// for each, since the number of the last event is written once.
var eventSteps = [...]int{32, 8, 2, 1}

// saveEvents adds the events that wait.
func (tx *Tx) saveEvents() error {
	for _, n := range eventSteps {
		for ; len(tx.events) >= n; tx.events = tx.events[n:] {
			values := make([]any, 0, 4*n)
			for _, e := range tx.events[:n] {
				of := any(nil) // no task
				if e.Of != 0 {
					of = e.Of
				}
				values = append(values, e.Time.UnixMicro(), string(e.Kind), string(e.Data), of)
			}
			result, err := tx.exec(eventInserts[n], values...)
			if err == nil {
				err = tx.hashEvents(result, tx.events[:n]...)
			}
			if err != nil {
				return fmt.Errorf("log %d events: %w", n, err)
			}
		}
	}
	return nil
}

// eventInserts add as many events as each of eventSteps says.
var eventInserts = func() map[int]string {
	inserts := map[int]string{}
	for _, n := range eventSteps {
		inserts[n] = "INSERT INTO events (time, kind, data, task) VALUES (?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?)", n-1)
	}
	return inserts
}()

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
// one task with all its revisions, or those of all tasks when id is "".
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
	if err := tx.saveEvents(); err != nil {
		return nil, err
	}
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
