package ledger

import (
	"context"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// Ended counts tasks of an agent that ended on a day, in one status.
type Ended struct {
	Day    string // in UTC, as 2026-03-09
	Agent  string
	Status envelope.Status
	Tasks  int
}

// Ran sums up the runs of an agent that ended on a day.
type Ran struct {
	Day, Agent       string
	Runs             int
	Took             time.Duration
	Tokens, USDCents int64
	Unknown          int // runs that may have spent something, and it is unknown how much
}

// Queued says how many tasks wait for a slot of an agent, and since when the oldest does.
type Queued struct {
	Agent  string
	Tasks  int
	Oldest time.Time // when it was accepted
}

const (
	dayOf      = "strftime('%Y-%m-%d', finished / 1000000, 'unixepoch')"
	endedQuery = "SELECT " + dayOf + ", agent, status, count(*) FROM tasks " +
		"WHERE state = 'done' AND finished >= ? AND NOT (status = 'stopped' AND kind = '') GROUP BY 1, 2, 3" // one that was superseded has no kind
	ranQuery = "SELECT strftime('%Y-%m-%d', r.finished / 1000000, 'unixepoch'), t.agent, count(*), total(r.finished - r.started), " +
		"coalesce(sum(r.tokens), 0), coalesce(sum(r.usd_cents), 0), " +
		"sum(r.started IS NOT NULL AND r.tokens IS NULL AND r.usd_cents IS NULL) " +
		"FROM runs r JOIN tasks t ON t.seq = r.task WHERE r.finished >= ? GROUP BY 1, 2"
	queuedQuery = "SELECT agent, count(*), min(received) FROM tasks WHERE state <> 'done' AND state = 'queued' GROUP BY 1 ORDER BY 1"
)

// EndedSince counts the tasks that ended since a time, by day, agent and status. It reads all
// tasks that are done.
func (r *Reader) EndedSince(ctx context.Context, since time.Time) ([]Ended, error) {
	list, err := all(ctx, r.read, func(r row) (e Ended, err error) {
		err = r.Scan(&e.Day, &e.Agent, &e.Status, &e.Tasks)
		return e, err
	}, endedQuery, since.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("count ended tasks: %w", err)
	}
	return list, nil
}

// RanSince sums up the runs that ended since a time, by day and agent.
func (r *Reader) RanSince(ctx context.Context, since time.Time) ([]Ran, error) {
	list, err := all(ctx, r.read, func(r row) (n Ran, err error) {
		var micros float64
		err = r.Scan(&n.Day, &n.Agent, &n.Runs, &micros, &n.Tokens, &n.USDCents, &n.Unknown)
		n.Took = time.Duration(micros) * time.Microsecond
		return n, err
	}, ranQuery, since.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("sum up runs: %w", err)
	}
	return list, nil
}

// OldestQueued returns when the queued task was accepted that has waited longest; zero for none.
func (r *Reader) OldestQueued(ctx context.Context) (oldest time.Time, err error) {
	_, _, err = first(ctx, r.read, func(r row) (bool, error) { return true, r.Scan(stamp{&oldest}) },
		"SELECT received FROM tasks WHERE state <> 'done' AND state = 'queued' ORDER BY seq LIMIT 1")
	if err != nil {
		return oldest, fmt.Errorf("look up the oldest queued task: %w", err)
	}
	return oldest, nil
}

// QueuedTasksByAgent returns how many tasks are queued, by agent.
func (r *Reader) QueuedTasksByAgent(ctx context.Context) ([]Queued, error) {
	list, err := all(ctx, r.read, func(r row) (q Queued, err error) {
		err = r.Scan(&q.Agent, &q.Tasks, stamp{&q.Oldest})
		return q, err
	}, queuedQuery)
	if err != nil {
		return nil, fmt.Errorf("count queued tasks: %w", err)
	}
	return list, nil
}
