package reader

import (
	"context"
	"sort"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// An EventQuery says which events to read. The zero value is all of them.
type EventQuery struct {
	Task  envelope.ID // of one task; "": of all
	After int64       // with a greater number
	Since time.Time   // not before; zero: no limit
	Tail  int         // the latest of these; 0: all
}

// Events calls print for the events of a query, the oldest first.
func (r *Reader) Events(ctx context.Context, q EventQuery, print func(client.Event) error) error {
	start := max(q.After, 0)
	if q.Task == "" && !q.Since.IsZero() {
		before, err := r.lastEventBefore(ctx, func(e client.Event) bool { return e.Time.Before(q.Since) })
		if err != nil {
			return err
		}
		start = max(start, before)
	}
	if q.Tail <= 0 {
		return r.eachEvent(ctx, q, start, print)
	}
	latest, err := r.latestEvents(ctx, q, start)
	for _, e := range latest {
		if err = print(e); err != nil {
			return err
		}
	}
	return err
}

// FollowEvents calls print for the events after q.After, or with Since or Tail for the recorded
// ones of the query, and then for those that come. It ends as client.Follow does.
func (r *Reader) FollowEvents(ctx context.Context, daemon *client.Client, q EventQuery, print func(client.Event) error) error {
	if q.Tail == 0 && q.Since.IsZero() {
		if q.Task != "" {
			q.After = max(q.After, 0) // one task has few events
		}
		return daemon.Follow(ctx, q.Task, q.After, print)
	}
	last := max(q.After, 0)
	known := EventQuery{After: last, Tail: 1} // before the events of the query are read: later ones are followed
	if err := r.Events(ctx, known, func(e client.Event) error { last = e.Seq; return nil }); err != nil {
		return err
	}
	if err := r.Events(ctx, q, func(e client.Event) error { last = max(last, e.Seq); return print(e) }); err != nil {
		return err
	}
	return daemon.Follow(ctx, q.Task, last, print)
}

// latestEvents returns the latest events of a query after a number.
func (r *Reader) latestEvents(ctx context.Context, q EventQuery, start int64) ([]client.Event, error) {
	last := start
	if q.Task == "" {
		status, err := r.Client.Brief(ctx)
		if err != nil {
			return nil, err
		}
		last = status.LastEvent
	}
	for window := int64(q.Tail); ; window *= 4 { // retention leaves gaps between the numbers
		from, latest := max(start, last-window), []client.Event(nil)
		err := r.eachEvent(ctx, q, from, func(e client.Event) error {
			latest = append(latest, e)
			if len(latest) > 2*q.Tail {
				latest = append(latest[:0], latest[len(latest)-q.Tail:]...)
			}
			return nil
		})
		if err != nil || from == start || len(latest) >= q.Tail {
			return latest[max(0, len(latest)-q.Tail):], err
		}
	}
}

// eachEvent calls print for the events of a query after a number.
func (r *Reader) eachEvent(ctx context.Context, q EventQuery, after int64, print func(client.Event) error) error {
	for {
		events, err := r.Client.Events(ctx, q.Task, after, EventPage)
		if err != nil {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if e.Time.Before(q.Since) {
				continue
			}
			if err := print(e); err != nil {
				return err
			}
		}
		if len(events) < EventPage {
			return nil
		}
	}
}

// lastEventBefore returns the number of the last event with a property that all earlier events
// have too; 0 for none. It asks for single events: 20 of a million.
func (r *Reader) lastEventBefore(ctx context.Context, has func(client.Event) bool) (int64, error) {
	status, failed := r.Client.Brief(ctx)
	n := sort.Search(int(status.LastEvent), func(seq int) bool {
		if failed != nil {
			return true
		}
		next, err := r.Client.Events(ctx, "", int64(seq), 1)
		failed = err
		return len(next) == 0 || !has(next[0])
	})
	return int64(n), failed
}
