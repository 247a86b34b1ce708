package index

import (
	"context"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// CatchUp brings the index to the end of the journal in a directory, and calls progress, if
// it isn't nil, now and then with the number of the last event.
func (x *Index) CatchUp(dir string, progress func(n uint64)) (journal.Position, error) {
	return newCatchUp(x.read, func(rows []Change, end journal.Position) error {
		if end == (journal.Position{}) {
			end = x.mark // the rows may be written again
		}
		return x.Apply(rows, end)
	}).run(dir, x.mark, progress)
}

// run collects what a journal has behind a mark.
func (c *catchUp) run(dir string, mark journal.Position, progress func(n uint64)) (journal.Position, error) {
	end, err := journal.Replay(dir, mark, func(e *journal.Event) error {
		if len(c.rows) >= catchUpRows {
			if err := c.flush(journal.Position{}); err != nil {
				return err
			}
			if progress != nil {
				progress(e.N)
			}
		}
		return c.take(e)
	})
	if err == nil && end != mark {
		err = c.flush(end)
	}
	if err != nil {
		return end, fmt.Errorf("bring index to the end of the journal: %w", err)
	}
	return end, nil
}

// Add writes the rows of events that the journal has, up to a mark.
func (x *Index) Add(events []journal.Event, mark journal.Position) error {
	c := newCatchUp(x.read, nil)
	for i := range events {
		if err := c.take(&events[i]); err != nil {
			return err
		}
	}
	return x.Apply(c.rows, mark)
}

const (
	catchUpRows = 50_000    // how many rows are written at once
	maxSeqs     = 1_000_000 // how many tasks are remembered
)

// A revision names a task as the journal does.
type revision struct {
	id envelope.ID
	n  int
}

// A catchUp collects rows of the journal.
type catchUp struct {
	read  *statements                                     // of the index
	apply func(rows []Change, end journal.Position) error // a zero end: there is more
	rows  []Change
	at    map[Key]int // in rows
	seqs  map[revision]int64
}

func newCatchUp(read *statements, apply func([]Change, journal.Position) error) *catchUp {
	return &catchUp{read: read, apply: apply, at: map[Key]int{}, seqs: map[revision]int64{}}
}

// take adds the row of an event.
func (c *catchUp) take(e *journal.Event) error {
	row, is, err := ParseChange(e.Kind, e.Data, bodyPlaces(e))
	if err != nil {
		return fmt.Errorf("event %d: %w", e.N, err)
	}
	if !is {
		row, err = c.event(e)
	}
	if err != nil {
		return fmt.Errorf("event %d: %w", e.N, err)
	}
	if row.of == tasks && !row.gone() {
		c.seqs[revision{envelope.ID(strings.Clone(e.Task)), int(e.Revision)}] = row.values[0].number
	}
	key := row.Key()
	if at, there := c.at[key]; there {
		c.rows[at] = row.Over(c.rows[at])
		return nil
	}
	c.at[key] = len(c.rows)
	c.rows = append(c.rows, row)
	return nil
}

// event is the row of an event that changes no row.
func (c *catchUp) event(e *journal.Event) (Change, error) {
	event := task.Event{Seq: int64(e.N), Time: e.At, Kind: task.Kind(strings.Clone(e.Kind)), Data: append([]byte(nil), e.Data...)}
	if e.Task != "" {
		name := revision{envelope.ID(strings.Clone(e.Task)), int(e.Revision)}
		seq, known := c.seqs[name]
		if !known {
			var err error
			seq, known, err = first(context.Background(), c.read, one[int64], "SELECT seq FROM tasks WHERE id = ? AND revision = ?", string(name.id), name.n)
			if err != nil || !known {
				return Change{}, fmt.Errorf("find task %s: %w", name.id, errorOr(err))
			}
		}
		event.Of = seq
	}
	return EventRow(&event), nil
}

func errorOr(err error) error {
	if err == nil {
		return ErrUnknown
	}
	return err
}

// flush hands on the rows.
func (c *catchUp) flush(end journal.Position) error {
	err := c.apply(c.rows, end)
	c.rows, c.at = nil, map[Key]int{}
	if len(c.seqs) > maxSeqs {
		clear(c.seqs)
	}
	return err
}
