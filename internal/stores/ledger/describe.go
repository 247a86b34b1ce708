package ledger

import (
	"context"
	"fmt"
	"strings"

	"mailboxd/envelope"
)

// Requests returns the lines of the revisions with these Seqs, as they came. It leaves out
// those that are too old to be kept.
func (r *Reader) Requests(ctx context.Context, seqs []int64) (map[int64][]byte, error) {
	type request struct {
		task int64
		body []byte
	}
	found := make(map[int64][]byte, len(seqs))
	err := inSteps(seqs, func(some []any) error {
		query := "SELECT task, body FROM requests WHERE task IN (?" + strings.Repeat(", ?", len(some)-1) + ")"
		requests, err := all(ctx, r.read, func(r row) (q request, err error) { return q, r.Scan(&q.task, &q.body) }, query, some...)
		for _, q := range requests {
			found[q.task] = q.body
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	return found, nil
}

// Neighbours are the ids before and after an id in byte order; "" for none.
type Neighbours struct{ Before, After envelope.ID }

// NeighboursOf returns the neighbours of ids among all that are known, and the Seq of the newest
// revision; 0 for none.
func (r *Reader) NeighboursOf(ctx context.Context, ids []envelope.ID) (found map[envelope.ID]Neighbours, newest int64, err error) {
	type location struct {
		id envelope.ID
		Neighbours
	}
	found = make(map[envelope.ID]Neighbours, len(ids))
	err = inSteps(ids, func(some []any) error {
		query := "WITH wanted (id) AS (VALUES (?)" + strings.Repeat(", (?)", len(some)-1) + ") SELECT id," +
			" coalesce((SELECT max(t.id) FROM tasks t WHERE t.id < wanted.id), '')," +
			" coalesce((SELECT min(t.id) FROM tasks t WHERE t.id > wanted.id), '') FROM wanted"
		places, err := all(ctx, r.read, func(r row) (p location, err error) { return p, r.Scan(&p.id, &p.Before, &p.After) }, query, some...)
		for _, p := range places {
			found[p.id] = p.Neighbours
		}
		return err
	})
	if err == nil {
		newest, _, err = first(ctx, r.read, one[int64], "SELECT coalesce(max(seq), 0) FROM tasks")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("compare ids: %w", err)
	}
	return found, newest, nil
}

// steps are how many things one statement is about, so that a few prepared ones do for any number.
var steps = [...]int{64, 8, 1}

// inSteps calls do with the values in groups that are as long as each of steps says.
func inSteps[T any](values []T, do func([]any) error) error {
	for _, n := range steps {
		for ; len(values) >= n; values = values[n:] {
			some := make([]any, n)
			for i, v := range values[:n] {
				some[i] = argument(v)
			}
			if err := do(some); err != nil {
				return err
			}
		}
	}
	return nil
}

// argument is a value as the driver takes it.
func argument(v any) any {
	if id, ok := v.(envelope.ID); ok {
		return string(id)
	}
	return v
}
