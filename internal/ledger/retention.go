package ledger

import (
	"context"
	"fmt"
	"time"
)

// over is a task that is done and needs nothing any more.
const over = "state = 'done' AND put = 1 AND delivered = 1 AND replaces = 0"

// DropBodies forgets the requests and results of up to limit tasks after
// afterSeq that were over before a time, and returns where to go on; 0 when
// there are no more. The tasks stay, with their ids, hashes and ends.
func (tx *Tx) DropBodies(before time.Time, afterSeq int64, limit int) (next int64, dropped int, err error) {
	seqs, err := all(context.Background(), tx.write, one[int64], `SELECT r.task FROM requests r JOIN tasks t ON t.seq = r.task
		WHERE r.task > ? AND finished < ? AND `+over+` ORDER BY r.task LIMIT ?`, afterSeq, before.UnixMicro(), limit)
	for _, seq := range seqs {
		for _, query := range []string{
			"DELETE FROM requests WHERE task = ?",
			"DELETE FROM results WHERE task = ?",
			"UPDATE approvals SET answer = NULL WHERE task = ? AND answer IS NOT NULL",
		} {
			if err == nil {
				_, err = tx.exec(query, seq)
			}
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("drop bodies: %w", err)
	}
	if len(seqs) < limit {
		return 0, len(seqs), nil
	}
	return seqs[len(seqs)-1], len(seqs), nil
}

// DropEvents forgets the events from before a time, of tasks that are over or
// of no task, among the next span numbers after afterSeq. It returns where to
// go on; 0 when what follows is younger.
func (tx *Tx) DropEvents(before time.Time, afterSeq int64, span int) (next int64, dropped int, err error) {
	from, found, err := first(context.Background(), tx.write, one[int64],
		"SELECT seq FROM events WHERE seq > ? AND time < ? ORDER BY seq LIMIT 1", afterSeq, before.UnixMicro())
	if err != nil || !found {
		return 0, 0, wrap(err)
	}
	last := from + int64(span)
	result, err := tx.exec(`DELETE FROM events WHERE seq >= ? AND seq < ? AND time < ? AND
		(task IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = events.task AND `+over+`))`, from, last, before.UnixMicro())
	if err != nil {
		return 0, 0, wrap(err)
	}
	n, err := result.RowsAffected()
	return last - 1, int(n), wrap(err)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("drop events: %w", err)
}

// CountOver returns how many bodies and events DropBodies and DropEvents would
// forget. It reads what is done, so it takes time.
func (r *Reader) CountOver(ctx context.Context, before time.Time) (bodies, events int, err error) {
	bodies, _, err = first(ctx, r.read, one[int], "SELECT count(*) FROM requests r JOIN tasks t ON t.seq = r.task WHERE finished < ? AND "+over, before.UnixMicro())
	if err == nil {
		events, _, err = first(ctx, r.read, one[int], `SELECT count(*) FROM events WHERE time < ? AND
			(task IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = events.task AND `+over+`))`, before.UnixMicro())
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count what is over: %w", err)
	}
	return bodies, events, nil
}
