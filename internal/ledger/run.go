package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/envelope"
)

// A Run is one attempt to have an agent do a task. Times are in UTC, to the
// microsecond.
type Run struct {
	Task    int64     // the task's Seq
	Attempt int       // 1 for the first
	ID      string    // MAILBOX_RUN_ID
	Intent  time.Time // when it was decided, which is durable before a process is asked for

	PID      int    // 0 until there is one
	PIDStart uint64 // clock ticks from boot to its start, as an id alone is used again
	Boot     string // runner.Evidence of its directory as it was decided; of a run whose process is known, the boot those ticks count from

	Started  time.Time // zero when no process was started
	Finished time.Time // zero until it has ended
	ExitCode int
	Signal   string // what ended it; "" for none
	Cause    string // why we ended it, PutBack or Spoke; "" when it ended by itself
	Tokens   *int64 // nil: unknown, which is not 0
	USDCents *int64

	Terms Terms // what it was admitted with

	Reserved envelope.Budget // what it may spend; without a limit: anything
	Lender   RunName         // whose reservation that was part of; zero: nobody's
	Settled  bool            // it is over, and its spending counted
}

// PutBack is the Cause of a run that did nothing, because its agent waits for a
// person. It is no failure.
const PutBack = "put_back"

// Spoke is the Cause of a run that ended without an answer, because its agent
// waits for what others say or do. It is no failure.
const Spoke = "spoke"

// A RunName names a run. The zero value is none.
type RunName struct {
	Task    int64
	Attempt int
}

const runColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
	"reserved_tokens, reserved_cents, lender, lender_attempt, settled"

// StartRun remembers the intent of a run: Task, Attempt, ID, Intent, Boot,
// Terms, Reserved and Lender of r. What is reserved is so in all its accounts
// from then on, and no longer the lender's. The same attempt twice is an error.
func (tx *Tx) StartRun(r Run) error {
	if err := tx.startRun(r); err != nil {
		return fmt.Errorf("start run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

func (tx *Tx) startRun(r Run) error {
	name := RunName{r.Task, r.Attempt}
	if !tx.opened { // the tables would say so themselves, but later
		if _, there, err := tx.run(name); there || err != nil {
			return tx.refuse(err, errors.New("it was started"))
		}
	}
	terms, err := r.Terms.encode()
	if err != nil {
		return err
	}
	begun := Run{
		Task: r.Task, Attempt: r.Attempt, ID: r.ID, Intent: exact(r.Intent), Boot: r.Boot,
		Reserved: envelope.Budget{Tokens: copied(r.Reserved.Tokens), USDCents: copied(r.Reserved.USDCents)}, Lender: r.Lender,
	}
	tx.stage.setRun(&runChange{record: record{Run: begun, terms: terms}, added: true})
	return tx.reserve(r)
}

// copied is n as it is now.
func copied(n *int64) *int64 {
	if n == nil {
		return nil
	}
	now := *n
	return &now
}

// SetProcess remembers which process a run is: its id, its start in clock
// ticks after boot, and the boot they count from.
func (tx *Tx) SetProcess(task int64, attempt, pid int, start uint64, boot string) error {
	r, found, err := tx.run(RunName{task, attempt})
	if err != nil {
		return fmt.Errorf("set process of run %d of task %d: %w", attempt, task, err)
	}
	if found {
		r.PID, r.PIDStart, r.Boot = pid, start, boot
		tx.stage.setRun(&runChange{record: r})
	}
	return nil
}

// VoidRun forgets the intent of a run that never began, and what was reserved
// for it.
func (tx *Tx) VoidRun(task int64, attempt int) error {
	err := tx.ReleaseRun(task, attempt)
	if err == nil {
		_, err = tx.exec("DELETE FROM runs WHERE task = ? AND attempt = ? AND started IS NULL", task, attempt)
	}
	if err != nil {
		return fmt.Errorf("forget run %d of task %d: %w", attempt, task, err)
	}
	return nil
}

// FinishRun remembers how the run with r's Task and Attempt ended: PID, unless it
// is 0, and Started and what follows it in r up to its cost. Its spending is counted then: in its
// accounts, and what it leaves of its reservation is its lender's again, if
// that is not over. A run that has an end already keeps it, and one that is
// not known stays so.
func (tx *Tx) FinishRun(r Run) error {
	if err := tx.finishRun(r); err != nil {
		return fmt.Errorf("finish run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

func (tx *Tx) finishRun(r Run) error {
	was, found, err := tx.run(RunName{r.Task, r.Attempt})
	if err != nil || !found || !was.Finished.IsZero() || was.Settled {
		return err
	}
	if r.Tokens == nil && r.USDCents == nil && limitsOf(was.Reserved) == (limits{}) { // as of most: there is nothing to count
		was.PID, was.Started, was.Finished = cmp.Or(r.PID, was.PID), exact(r.Started), exact(r.Finished)
		was.ExitCode, was.Signal, was.Cause, was.Settled = r.ExitCode, r.Signal, r.Cause, true
		tx.stage.setRun(&runChange{record: was})
		return nil
	}
	was, open, err := first(background, tx.write, scanRecord,
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
func (tx *Tx) Run(name RunName) (Run, bool, error) {
	run, ok, err := first(context.Background(), tx.write, scanRun,
		"SELECT "+runColumns+" FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
	if err != nil {
		return Run{}, false, fmt.Errorf("look up run %d of task %d: %w", name.Attempt, name.Task, err)
	}
	return run, ok, nil
}

// LastRun returns the run of a task that was begun last, and whether there is
// one.
func (tx *Tx) LastRun(task int64) (Run, bool, error) {
	run, ok, err := first(context.Background(), tx.write, scanRun,
		"SELECT "+runColumns+" FROM runs WHERE task = ? ORDER BY attempt DESC LIMIT 1", task)
	if err != nil {
		return Run{}, false, fmt.Errorf("look up the last run of task %d: %w", task, err)
	}
	return run, ok, nil
}

// Runs returns the runs of the revision with this Seq, in order of attempt.
func (r *Reader) Runs(ctx context.Context, seq int64) ([]Run, error) {
	runs, err := all(ctx, r.read, scanRun, "SELECT "+runColumns+" FROM runs WHERE task = ? ORDER BY attempt", seq)
	if err != nil {
		return nil, fmt.Errorf("list runs of task %d: %w", seq, err)
	}
	return runs, nil
}

// A record is a run as it is written: its terms are read only by who needs them.
type record struct {
	Run
	terms string
}

func scanRun(r row) (Run, error) {
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
