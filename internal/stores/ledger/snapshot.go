package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
)

// WriteSnapshot writes a copy of the ledger to path, where there must be no file. The copy
// is one moment: all transactions up to it, and none after. A daemon can go on writing. The
// caller syncs the file.
func (r *Reader) WriteSnapshot(ctx context.Context, path string) error {
	if err := vacuumInto(ctx, r.db, path); err != nil {
		return fmt.Errorf("write snapshot of ledger: %w", err)
	}
	return nil
}

func vacuumInto(ctx context.Context, ledger *sql.DB, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite fills an empty file
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return err
	}
	if _, err := ledger.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", uri(path, url.Values{}))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE commits SET live = 0")
	return errors.Join(err, db.Close())
}

// NoteRestored records in the ledger that it was restored from a backup of a moment. Until
// MarkRecovered, Lost is true: a line that it doesn't know may have run since the backup.
func (tx *Tx) NoteRestored(backup, now time.Time) error {
	aside := "restored " + now.UTC().Format(time.RFC3339Nano)
	if _, err := tx.exec("INSERT INTO losses (aside, at) VALUES (?, ?)", aside, now.UnixMicro()); err != nil {
		return fmt.Errorf("note the restoration: %w", err)
	}
	data, err := json.Marshal(map[string]string{"backup": backup.UTC().Format(time.RFC3339)})
	if err != nil {
		return fmt.Errorf("note the restoration: %w", err)
	}
	return tx.Log(task.Event{Time: now, Kind: task.KindLedgerRestored, Data: data})
}
