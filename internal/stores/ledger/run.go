package ledger

import (
	"cmp"
	"context"
	"fmt"

	"mailboxd/internal/decisions/task"
)

const runColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
	"reserved_tokens, reserved_cents, lender, lender_attempt, settled, runner, incarnation, token"

// StartRun records the intent of a run: Task, Attempt, ID, Intent, Boot,
// Terms, Reserved, Lender and At of r. What is reserved is so in all its accounts
// from then on, and no longer the lender's. The same attempt twice is an error.
func (tx *Tx) StartRun(r task.Run) (err error) {
	defer wrap(&err, "start run %d of task %d", r.Attempt, r.Task)
	terms, err := encodeTerms(r.Terms)
	if err != nil {
		return err
	}
	_, err = tx.exec("INSERT INTO runs (task, attempt, run_id, intent, pid, pid_start, boot, exit_code, signal, cause, terms, "+
		"reserved_tokens, reserved_cents, lender, lender_attempt, runner, incarnation, token) "+
		"VALUES (?, ?, ?, ?, 0, 0, ?, 0, '', '', ?, ?, ?, ?, ?, ?, ?, ?)",
		r.Task, r.Attempt, r.ID, r.Intent.UnixMicro(), r.Boot, terms, r.Reserved.Tokens, r.Reserved.USDCents, r.Lender.Task, r.Lender.Attempt,
		r.At.Runner, r.At.Incarnation, r.At.Token)
	if err != nil {
		return err
	}
	tx.runs[task.RunName{Task: r.Task, Attempt: r.Attempt}] = task.Run{
		Task: r.Task, Attempt: r.Attempt, ID: r.ID, Intent: exact(r.Intent), Boot: r.Boot, Terms: r.Terms, Reserved: r.Reserved, Lender: r.Lender,
		At: r.At,
	}
	return tx.reserve(r)
}

// SetProcess records which process a run is: its id, its start in clock
// ticks after boot, and the boot they count from.
func (tx *Tx) SetProcess(seq int64, attempt, pid int, start uint64, boot string) error {
	delete(tx.runs, task.RunName{Task: seq, Attempt: attempt})
	_, err := tx.exec("UPDATE runs SET pid = ?, pid_start = ?, boot = ? WHERE task = ? AND attempt = ?", pid, int64(start), boot, seq, attempt)
	if err != nil {
		return fmt.Errorf("set process of run %d of task %d: %w", attempt, seq, err)
	}
	return nil
}

// VoidRun removes the intent of a run that never began, and its reservation.
func (tx *Tx) VoidRun(seq int64, attempt int) error {
	err := tx.ReleaseRun(seq, attempt)
	if err == nil {
		delete(tx.runs, task.RunName{Task: seq, Attempt: attempt})
		_, err = tx.exec("DELETE FROM runs WHERE task = ? AND attempt = ? AND started IS NULL", seq, attempt)
	}
	if err != nil {
		return fmt.Errorf("remove run %d of task %d: %w", attempt, seq, err)
	}
	return nil
}

// FinishRun records how the run with r's Task and Attempt ended: PID, unless it
// is 0, and Started and what follows it in r up to its cost. Its spending is counted then: in its
// accounts, and what it leaves of its reservation is its lender's again, if
// that is not over. A run that has an end already keeps it, and one that is
// not known stays so.
func (tx *Tx) FinishRun(r task.Run) (err error) {
	defer wrap(&err, "finish run %d of task %d", r.Attempt, r.Task)
	was, found, err := tx.Run(task.RunName{Task: r.Task, Attempt: r.Attempt})
	if err != nil || !found || !was.Finished.IsZero() || was.Settled {
		return err
	}
	was.PID = cmp.Or(r.PID, was.PID)
	was.Started, was.Finished, was.ExitCode, was.Signal, was.Cause = exact(r.Started), exact(r.Finished), r.ExitCode, r.Signal, r.Cause
	was.Tokens, was.USDCents = countable(r.Tokens), countable(r.USDCents)
	return tx.settle(was)
}

// setRun writes what a run is now, as far as it changes after its start, but not its process.
func (tx *Tx) setRun(r task.Run) error {
	tx.runs[task.RunName{Task: r.Task, Attempt: r.Attempt}] = r
	_, err := tx.exec("UPDATE runs SET pid = ?, started = ?, finished = ?, exit_code = ?, signal = ?, cause = ?, tokens = ?, usd_cents = ?, "+
		"reserved_tokens = ?, reserved_cents = ?, settled = ? WHERE task = ? AND attempt = ?",
		r.PID, micros(r.Started), micros(r.Finished), r.ExitCode, r.Signal, string(r.Cause), r.Tokens, r.USDCents,
		r.Reserved.Tokens, r.Reserved.USDCents, r.Settled, r.Task, r.Attempt)
	return err
}

// Run returns a run, and whether there is one.
func (tx *Tx) Run(name task.RunName) (task.Run, bool, error) {
	if run, ok := tx.runs[name]; ok {
		return run, true, nil
	}
	run, ok, err := first(background, tx.write, scanRun,
		"SELECT "+runColumns+" FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
	if err != nil {
		return task.Run{}, false, fmt.Errorf("look up run %d of task %d: %w", name.Attempt, name.Task, err)
	}
	if ok {
		tx.runs[name] = run
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

func scanRun(r row) (run task.Run, err error) {
	var ticks int64
	var terms string
	err = r.Scan(&run.Task, &run.Attempt, &run.ID, stamp{&run.Intent}, &run.PID, &ticks, &run.Boot,
		stamp{&run.Started}, stamp{&run.Finished}, &run.ExitCode, &run.Signal, &run.Cause, &run.Tokens, &run.USDCents, &terms,
		&run.Reserved.Tokens, &run.Reserved.USDCents, &run.Lender.Task, &run.Lender.Attempt, &run.Settled,
		&run.At.Runner, &run.At.Incarnation, &run.At.Token)
	run.PIDStart = uint64(ticks)
	if err == nil {
		run.Terms, err = decodeTerms(terms)
	}
	return run, err
}
