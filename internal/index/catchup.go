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
	c := catchUp{index: x, at: map[Key]int{}, seqs: map[revision]int64{}}
	end, err := journal.Replay(dir, x.mark, func(e *journal.Event) error {
		if len(c.rows) >= catchUpRows {
			if err := c.apply(journal.Position{}); err != nil {
				return err
			}
			if progress != nil {
				progress(e.N)
			}
		}
		return c.take(e)
	})
	if err == nil && end != x.mark {
		err = c.apply(end)
	}
	if err != nil {
		return end, fmt.Errorf("bring index to the end of the journal: %w", err)
	}
	return end, nil
}

// catchUpRows is how many rows are written at once.
const catchUpRows = 50_000

// A revision names a task as the journal does.
type revision struct {
	id envelope.ID
	n  int
}

// A catchUp collects rows of the journal.
type catchUp struct {
	index *Index
	rows  []Change
	at    map[Key]int // in rows
	seqs  map[revision]int64
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
			seq, known, err = first(context.Background(), c.index.read, one[int64], "SELECT seq FROM tasks WHERE id = ? AND revision = ?", string(name.id), name.n)
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

// apply writes the rows. A zero position leaves the mark: the rows may be written again.
func (c *catchUp) apply(mark journal.Position) error {
	if mark == (journal.Position{}) {
		mark = c.index.mark
	}
	err := c.index.Apply(c.rows, mark)
	c.rows, c.at = nil, map[Key]int{}
	if len(c.seqs) > 1_000_000 {
		c.seqs = map[revision]int64{}
	}
	return err
}
