package ledger

import (
	"context"
	"fmt"

	"mailboxd/internal/task"
)

const runColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
	"reserved_tokens, reserved_cents, lender, lender_attempt, settled"

// StartRun records the intent of a run: Task, Attempt, ID, Intent, Boot,
// Terms, Reserved and Lender of r. What is reserved is so in all its accounts
// from then on, and no longer the lender's. The same attempt twice is an error.
func (tx *Tx) StartRun(r task.Run) error {
	if err := tx.startRun(r); err != nil {
		return fmt.Errorf("start run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

func (tx *Tx) startRun(r task.Run) error {
	terms, err := encodeTerms(r.Terms)
	if err != nil {
		return err
	}
	_, err = tx.exec("INSERT INTO runs (task, attempt, run_id, intent, pid, pid_start, boot, exit_code, signal, cause, terms, "+
		"reserved_tokens, reserved_cents, lender, lender_attempt) VALUES (?, ?, ?, ?, 0, 0, ?, 0, '', '', ?, ?, ?, ?, ?)",
		r.Task, r.Attempt, r.ID, r.Intent.UnixMicro(), r.Boot, terms, r.Reserved.Tokens, r.Reserved.USDCents, r.Lender.Task, r.Lender.Attempt)
	if err != nil {
		return err
	}
	return tx.reserve(r)
}

// SetProcess records which process a run is: its id, its start in clock
// ticks after boot, and the boot they count from.
func (tx *Tx) SetProcess(seq int64, attempt, pid int, start uint64, boot string) error {
	_, err := tx.exec("UPDATE runs SET pid = ?, pid_start = ?, boot = ? WHERE task = ? AND attempt = ?", pid, int64(start), boot, seq, attempt)
	if err != nil {
		return fmt.Errorf("set process of run %d of task %d: %w", attempt, seq, err)
	}
	return nil
}

// VoidRun removes the intent of a run that never began, and its reservation.
func (tx *Tx) VoidRun(task int64, attempt int) error {
	err := tx.ReleaseRun(task, attempt)
	if err == nil {
		_, err = tx.exec("DELETE FROM runs WHERE task = ? AND attempt = ? AND started IS NULL", task, attempt)
	}
	if err != nil {
		return fmt.Errorf("remove run %d of task %d: %w", attempt, task, err)
	}
	return nil
}

// FinishRun records how the run with r's Task and Attempt ended: PID, unless it
// is 0, and Started and what follows it in r up to its cost. Its spending is counted then: in its
// accounts, and what it leaves of its reservation is its lender's again, if
// that is not over. A run that has an end already keeps it, and one that is
// not known stays so.
func (tx *Tx) FinishRun(r task.Run) error {
	if err := tx.finishRun(r); err != nil {
		return fmt.Errorf("finish run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

func (tx *Tx) finishRun(r task.Run) error {
	was, open, err := changed(tx, scanRecord,
		`UPDATE runs SET pid = coalesce(nullif(?, 0), pid), started = ?, finished = ?, exit_code = ?, signal = ?, cause = ?,
		tokens = ?, usd_cents = ?, settled = 1 WHERE task = ? AND attempt = ? AND finished IS NULL AND settled = 0 RETURNING `+runColumns,
		r.PID, micros(r.Started), micros(r.Finished), r.ExitCode, r.Signal, r.Cause,
		countable(r.Tokens), countable(r.USDCents), r.Task, r.Attempt)
	if err != nil || !open {
		return err
	}
	return tx.settle(was)
}

// Run returns a run, and whether there is one.
func (tx *Tx) Run(name task.RunName) (task.Run, bool, error) {
	run, ok, err := first(background, tx.write, scanRun,
		"SELECT "+runColumns+" FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
	if err != nil {
		return task.Run{}, false, fmt.Errorf("look up run %d of task %d: %w", name.Attempt, name.Task, err)
	}
	return run, ok, nil
}

// LastRun returns the run of a task that was begun last, and whether there is
// one.
func (tx *Tx) LastRun(seq int64) (task.Run, bool, error) {
	run, ok, err := first(context.Background(), tx.write, scanRun,
		"SELECT "+runColumns+" FROM runs WHERE task = ? ORDER BY attempt DESC LIMIT 1", seq)
	if err != nil {
		return task.Run{}, false, fmt.Errorf("look up the last run of task %d: %w", seq, err)
	}
	return run, ok, nil
}

// Runs returns the runs of the revision with this Seq, in order of attempt.
func (r *Reader) Runs(ctx context.Context, seq int64) ([]task.Run, error) {
	runs, err := all(ctx, r.read, scanRun, "SELECT "+runColumns+" FROM runs WHERE task = ? ORDER BY attempt", seq)
	if err != nil {
		return nil, fmt.Errorf("list runs of task %d: %w", seq, err)
	}
	return runs, nil
}

// A record is a run as it is written: its terms are read only by callers that need them.
type record struct {
	task.Run
	terms string
}

func scanRun(r row) (task.Run, error) {
	rec, err := scanRecord(r)
	if err == nil {
		err = rec.readTerms()
	}
	return rec.Run, err
}

func (rec *record) readTerms() (err error) {
	rec.Terms, err = decodeTerms(rec.terms)
	return err
}

func scanRecord(r row) (run record, err error) {
	var ticks int64
	err = r.Scan(&run.Task, &run.Attempt, &run.ID, stamp{&run.Intent}, &run.PID, &ticks, &run.Boot,
		stamp{&run.Started}, stamp{&run.Finished}, &run.ExitCode, &run.Signal, &run.Cause, &run.Tokens, &run.USDCents, &run.terms,
		&run.Reserved.Tokens, &run.Reserved.USDCents, &run.Lender.Task, &run.Lender.Attempt, &run.Settled)
	run.PIDStart = uint64(ticks)
	return run, err
}
