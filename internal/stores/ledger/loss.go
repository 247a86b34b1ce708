package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
)

// noteLoss records in a new ledger that there was one before it: in an event, and
// until MarkRecovered for Lost. A ledger that is missing has no name that it was moved to.
func noteLoss(ctx context.Context, conn *sql.Conn, opened Opened) error {
	now, data := time.Now().UnixMicro(), map[string]string{}
	if opened.Aside != "" {
		data["file"] = opened.Aside
	}
	if opened.Cause != nil {
		data["reason"] = opened.Cause.Error()
	}
	text, err := json.Marshal(data, json.Deterministic(true))
	if err == nil {
		_, err = conn.ExecContext(ctx, "INSERT INTO losses (aside, at) VALUES (?, ?)", opened.Aside, now)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "INSERT INTO events (time, kind, data) VALUES (?, ?, ?)", now, string(task.KindLedgerLost), string(text))
	}
	return err
}

// Lost reports whether an earlier ledger could not be read, or was missing, and
// the lines of its time have not all been read again: see MarkRecovered.
func (r *Reader) Lost(ctx context.Context) (bool, error) {
	lost, _, err := first(ctx, r.read, one[bool], "SELECT count(*) > 0 FROM losses WHERE over IS NULL")
	if err != nil {
		return false, fmt.Errorf("look for lost ledgers: %w", err)
	}
	return lost, nil
}

// MarkRecovered records that every line was read again that an earlier, lost ledger may
// have had.
func (tx *Tx) MarkRecovered() error {
	if _, err := tx.exec("UPDATE losses SET over = ? WHERE over IS NULL", time.Now().UnixMicro()); err != nil {
		return fmt.Errorf("record that lines were read again: %w", err)
	}
	return nil
}
