package store

import (
	"context"
	"errors"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A task is at least as sensitive as its parent and all further ancestors (AINL-44): its
// content may come from them, and not every dialect can state a sensitivity.

// Lookup returns a task and its line. A transaction has its own.
type Lookup func(seq int64) (task.Task, []byte, error)

// SensitivityOf returns the highest sensitivity of a task's line and the lines of its
// ancestors, with their artifacts. A line that is no longer kept, or can't be decoded, counts as Restricted.
func (rd *Reader) SensitivityOf(seq int64, look Lookup) (highest envelope.Sensitivity, err error) {
	for seq != 0 && highest < envelope.Restricted {
		row, raw, err := look(seq)
		if errors.Is(err, ledger.ErrUnknown) {
			return envelope.Restricted, nil
		}
		if err != nil {
			return highest, err
		}
		t, findings := dialect.DecodeTask(row.Dialect, raw, rd.Opts.Reading)
		if findings.Refused() {
			return envelope.Restricted, nil
		}
		highest, seq = max(highest, artifactReader{rd}.raise(context.Background(), t).Sensitivity), row.Parent
	}
	return highest, nil
}

// lookUp is the Lookup outside of a transaction.
func lookUp(ctx context.Context, l *ledger.Ledger) Lookup {
	return func(seq int64) (row task.Task, raw []byte, err error) {
		if row, err = l.Task(ctx, seq); err == nil {
			raw, err = l.Raw(ctx, seq)
		}
		return row, raw, err
	}
}

// WithSensitivity returns a task with at least the sensitivity of its parent and of its artifacts.
func (rd *Reader) WithSensitivity(ctx context.Context, parent int64, t envelope.Task) (envelope.Task, error) {
	highest, err := rd.SensitivityOf(parent, lookUp(ctx, rd.Ledger))
	t.Sensitivity = max(t.Sensitivity, highest)
	return artifactReader{rd}.raise(ctx, t), err
}
