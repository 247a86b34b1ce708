package ledger

import (
	"context"
	"fmt"
	"time"
)

// over is a task, t, that is done and needs nothing any more: its notifications are
// sent, and the task that it belongs to does not need its answer.
const over = `t.state = 'done' AND t.put = 1 AND t.delivered = 1 AND t.replaces = 0
		AND NOT EXISTS (SELECT 1 FROM talks k WHERE k.task = t.seq AND k.open = 1)
		AND (t.parent = 0 OR NOT EXISTS (SELECT 1 FROM tasks p WHERE p.seq = t.parent AND p.state <> 'done'))`

// said is a message about a task that is over, or about none, that is in the inbox
// of its recipient.
const said = `(inbox = '' OR posted IS NOT NULL) AND
		(task = 0 OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = messages.task AND ` + over + `))`

// DropBodies removes the requests, results and Conversations of up to limit tasks after
// afterSeq that were over before a time, and returns where to go on; 0 when
// there are no more. The tasks stay, with their ids, hashes and ends.
func (tx *Tx) DropBodies(before time.Time, afterSeq int64, limit int) (next int64, dropped int, err error) {
	seqs, err := all(context.Background(), tx.write, one[int64], `SELECT r.task FROM requests r JOIN tasks t ON t.seq = r.task
		WHERE r.task > ? AND t.finished < ? AND `+over+` ORDER BY r.task LIMIT ?`, afterSeq, before.UnixMicro(), limit)
	for _, seq := range seqs {
		for _, query := range []string{
			"DELETE FROM requests WHERE task = ?",
			"DELETE FROM results WHERE task = ?",
			"DELETE FROM talks WHERE task = ?",
			"DELETE FROM waits WHERE task = ?",
			"DELETE FROM artifacts WHERE task = ? AND published = 0",
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

// DropEvents removes the events from before a time, of tasks that are over or
// of no task, among the next span numbers after afterSeq. It returns where to
// go on; 0 when what follows is younger. Of sealed events, the seq, the hash and a signed record stay;
// without a signer, they stay whole.
func (tx *Tx) DropEvents(before time.Time, afterSeq int64, span int) (next int64, dropped int, err error) {
	if !tx.mayPrune() {
		return 0, 0, nil
	}
	next, dropped, err = tx.dropAged("events", eventOver, before, afterSeq, span)
	if err != nil {
		return 0, 0, fmt.Errorf("drop events: %w", err)
	}
	return next, dropped, nil
}

const eventOver = "(events.task IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.seq = events.task AND " + over + `))
		AND events.seq <= (SELECT coalesce(max(last), 9223372036854775807) FROM seals)`

// DropMessages removes the messages from before a time about tasks that are over or
// about none, as DropEvents does. Messages that are due for an inbox stay.
func (tx *Tx) DropMessages(before time.Time, afterSeq int64, span int) (next int64, dropped int, err error) {
	next, dropped, err = tx.dropAged("messages", said, before, afterSeq, span)
	if err != nil {
		return 0, 0, fmt.Errorf("drop messages: %w", err)
	}
	return next, dropped, nil
}

// dropAged deletes rows of a table that has a seq and a time.
func (tx *Tx) dropAged(table, which string, before time.Time, afterSeq int64, span int) (next int64, dropped int, err error) {
	from, found, err := first(context.Background(), tx.write, one[int64],
		"SELECT seq FROM "+table+" WHERE seq > ? AND time < ? ORDER BY seq LIMIT 1", afterSeq, before.UnixMicro())
	if err != nil || !found {
		return 0, 0, err
	}
	last := from + int64(span)
	if table == "events" {
		if err := tx.prune(from, last, before); err != nil {
			return 0, 0, err
		}
	}
	result, err := tx.exec("DELETE FROM "+table+" WHERE seq >= ? AND seq < ? AND time < ? AND "+which, from, last, before.UnixMicro())
	if err != nil {
		return 0, 0, err
	}
	n, err := result.RowsAffected()
	return last - 1, int(n), err
}

// Aged counts what the Drop functions would remove.
type Aged struct{ Bodies, Events, Messages int }

// CountOver counts what DropBodies, DropEvents and DropMessages would remove. It
// reads all tasks that are done, so it takes time.
func (r *Reader) CountOver(ctx context.Context, before time.Time) (aged Aged, err error) {
	for _, count := range []struct {
		of    *int
		query string
	}{
		{&aged.Bodies, "SELECT count(*) FROM requests r JOIN tasks t ON t.seq = r.task WHERE t.finished < ? AND " + over},
		{&aged.Events, "SELECT count(*) FROM events WHERE time < ? AND " + eventOver},
		{&aged.Messages, "SELECT count(*) FROM messages WHERE time < ? AND " + said},
	} {
		if *count.of, _, err = first(ctx, r.read, one[int], count.query, before.UnixMicro()); err != nil {
			return Aged{}, fmt.Errorf("count what is over: %w", err)
		}
	}
	return aged, nil
}
