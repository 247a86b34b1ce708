package store

import (
	"context"
	"errors"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A task is at least as sensitive as the one whose agent asked for it, all the
// way up (AINL-44): what it says may come from there, and not every dialect has a
// word for it.

// Lookup returns a task and its line. A transaction has its own.
type Lookup func(seq int64) (task.Task, []byte, error)

// SensitivityOf is how sensitive a task is, by its line and by those of the tasks
// above it. Nobody knows of a line that is not kept, or not understood, any more:
// that is Restricted.
func (rd *Reader) SensitivityOf(seq int64, look Lookup) (most envelope.Sensitivity, err error) {
	for seq != 0 && most < envelope.Restricted {
		row, raw, err := look(seq)
		if errors.Is(err, ledger.ErrUnknown) {
			return envelope.Restricted, nil
		}
		if err != nil {
			return most, err
		}
		t, findings := dialect.DecodeTask(row.Dialect, raw, rd.Opts.Reading)
		if findings.Refused() {
			return envelope.Restricted, nil
		}
		most, seq = max(most, t.Sensitivity), row.Parent
	}
	return most, nil
}

// WithParentSensitivity is a task that is below another one, at least as sensitive as that.
func (rd *Reader) WithParentSensitivity(ctx context.Context, parent int64, t envelope.Task) (envelope.Task, error) {
	most, err := rd.SensitivityOf(parent, func(seq int64) (row task.Task, raw []byte, err error) {
		if row, err = rd.Ledger.Task(ctx, seq); err == nil {
			raw, err = rd.Ledger.Raw(ctx, seq)
		}
		return row, raw, err
	})
	t.Sensitivity = max(t.Sensitivity, most)
	return t, err
}
