package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/task"
)

// runs returns the runs of a revision as they are now, in order of attempt.
func (tx *Tx) runs(e *entry) ([]index.Run, error) {
	if e.parts != nil {
		return e.parts.runs, nil
	}
	return tx.ledger.index.StoredRuns(background, e.Seq)
}

// run returns a run of a revision for a change; nil when there is none.
func (tx *Tx) run(name task.RunName) (*entry, *index.Run, error) {
	e, err := tx.whole(name.Task)
	if e == nil || err != nil {
		return nil, nil, err
	}
	for i := range e.parts.runs {
		if e.parts.runs[i].Attempt == name.Attempt {
			return e, &e.parts.runs[i], nil
		}
	}
	return e, nil, nil
}

// StartRun writes the intent of a run: Task, Attempt, ID, Intent, Boot, Terms, Reserved and
// Lender of r. What is reserved is so in all its accounts from then on, and no longer the
// lender's. The same attempt twice is an error, of StartRun or of its Update.
func (tx *Tx) StartRun(r task.Run) error {
	if err := tx.startRun(r); err != nil {
		return fmt.Errorf("start run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

func (tx *Tx) startRun(r task.Run) error {
	e, was, err := tx.run(task.RunName{Task: r.Task, Attempt: r.Attempt})
	switch {
	case err != nil:
	case e == nil:
		err = ErrUnknown
	case was != nil:
		err = errors.New("it was started")
	}
	if err != nil {
		tx.wrong = err
		return err
	}
	terms, err := index.EncodeTerms(r.Terms)
	if err != nil {
		return err
	}
	begun := index.Run{Run: task.Run{
		Task: r.Task, Attempt: r.Attempt, ID: r.ID, Intent: index.Exact(r.Intent), Boot: r.Boot,
		Reserved: envelope.Budget{Tokens: copied(r.Reserved.Tokens), USDCents: copied(r.Reserved.USDCents)}, Lender: r.Lender,
	}, Encoded: terms}
	e.parts.runs = append(e.parts.runs, begun)
	slices.SortFunc(e.parts.runs, func(a, b index.Run) int { return cmp.Compare(a.Attempt, b.Attempt) })
	tx.row(e, index.RunRow(&begun))
	return tx.reserve(e, r)
}

// copied is n as it is now.
func copied(n *int64) *int64 {
	if n == nil {
		return nil
	}
	now := *n
	return &now
}

// SetProcess notes which process a run is: its id, its start in clock ticks after boot, and
// the boot from which they count.
func (tx *Tx) SetProcess(seq int64, attempt, pid int, start uint64, boot string) error {
	e, r, err := tx.run(task.RunName{Task: seq, Attempt: attempt})
	if err != nil {
		return fmt.Errorf("set process of run %d of task %d: %w", attempt, seq, err)
	}
	if r != nil {
		r.PID, r.PIDStart, r.Boot = pid, start, boot
		tx.row(e, index.RunRow(r))
	}
	return nil
}

// VoidRun forgets the intent of a run that never began, and what was reserved for it.
func (tx *Tx) VoidRun(seq int64, attempt int) error {
	err := tx.ReleaseRun(seq, attempt)
	if err != nil {
		return err
	}
	e, r, err := tx.run(task.RunName{Task: seq, Attempt: attempt})
	if err != nil {
		return fmt.Errorf("forget run %d of task %d: %w", attempt, seq, err)
	}
	if r != nil && r.Started.IsZero() {
		e.parts.runs = slices.DeleteFunc(e.parts.runs, func(r index.Run) bool { return r.Attempt == attempt })
		tx.row(e, index.RunGone(task.RunName{Task: seq, Attempt: attempt}))
	}
	return nil
}

// FinishRun writes how the run with r's Task and Attempt ended: PID, unless it is 0, and
// Started and what follows it in r up to its cost. Its spending is counted then: in its
// accounts, and what it leaves of its reservation is its lender's again, if that is not over.
// A run that has an end already keeps it, and one that is not known stays so.
func (tx *Tx) FinishRun(r task.Run) error {
	e, was, err := tx.run(task.RunName{Task: r.Task, Attempt: r.Attempt})
	if err == nil && was != nil && was.Finished.IsZero() && !was.Settled {
		was.PID, was.Started, was.Finished = cmp.Or(r.PID, was.PID), index.Exact(r.Started), index.Exact(r.Finished)
		was.ExitCode, was.Signal, was.Cause, was.Settled = r.ExitCode, r.Signal, r.Cause, true
		was.Tokens, was.USDCents = countable(r.Tokens), countable(r.USDCents)
		err = tx.settle(e, was)
	}
	if err != nil {
		return fmt.Errorf("finish run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return nil
}

// ReleaseRun gives back what was reserved for a run that never began.
func (tx *Tx) ReleaseRun(seq int64, attempt int) error {
	e, was, err := tx.run(task.RunName{Task: seq, Attempt: attempt})
	if err == nil && was != nil && was.Started.IsZero() && !was.Settled {
		was.Settled = true
		err = tx.settle(e, was)
	}
	if err != nil {
		return fmt.Errorf("release run %d of task %d: %w", attempt, seq, err)
	}
	return nil
}

// Run returns a run, and whether there is one.
func (tx *Tx) Run(name task.RunName) (task.Run, bool, error) {
	return tx.findRun(name.Task, func(r *index.Run) bool { return r.Attempt == name.Attempt })
}

// LastRun returns the run of a task that was begun last, and whether there is one.
func (tx *Tx) LastRun(seq int64) (task.Run, bool, error) {
	return tx.findRun(seq, func(*index.Run) bool { return true })
}

// findRun returns the last run of a revision that fits.
func (tx *Tx) findRun(seq int64, fits func(*index.Run) bool) (task.Run, bool, error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return task.Run{}, false, err
	}
	list, err := tx.runs(e)
	for i := len(list) - 1; i >= 0; i-- {
		if fits(&list[i]) {
			run, err := list[i].Decode()
			return run, true, err
		}
	}
	return task.Run{}, false, err
}

// CountUnansweredRuns counts the runs of a task that ended with messages and without an
// answer.
func (tx *Tx) CountUnansweredRuns(seq int64) (n int, err error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return 0, err
	}
	list, err := tx.runs(e)
	for _, r := range list {
		if r.Cause == task.CauseNoAnswer {
			n++
		}
	}
	return n, err
}

// An account is the sum of its runs, always: what changes the reservation or the spending of
// a run changes its accounts in the same transaction.

// reserve takes what a run may spend from its lender, and adds it to its accounts.
func (tx *Tx) reserve(e *entry, r task.Run) error {
	held := limitsOf(r.Reserved)
	if held == (limits{}) {
		return nil
	}
	if err := tx.lend(r.Lender, amounts{}.minus(held.sum())); err != nil {
		return err
	}
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, held.sum(), amounts{}, 0, true); err != nil {
			return err
		}
	}
	return tx.logBudget(e, task.KindBudgetReserved, booked{Attempt: r.Attempt, Reserved: r.Reserved, Accounts: spelled(r.Terms.Accounts)})
}

// settle counts what a run that is over has spent, as far as that is known. What is not known
// counts as it was reserved, unless nothing was started. It writes the row of the run.
func (tx *Tx) settle(e *entry, stored *index.Run) error {
	held, known := limitsOf(stored.Reserved), limits{stored.Tokens, stored.USDCents}
	if held == (limits{}) && known.sum() == (amounts{}) {
		tx.row(e, index.RunRow(stored))
		return nil // as most
	}
	r, err := stored.Decode()
	if err != nil {
		return err
	}
	used, unknown := known.sum(), 0
	for i := range used {
		if known[i] == nil && held[i] != nil && r.MayHaveSpent() {
			used[i], unknown = *held[i], 1
		}
	}
	if !r.MayHaveSpent() {
		stored.Reserved = envelope.Budget{}
	}
	tx.row(e, index.RunRow(stored))
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, amounts{}.minus(held.sum()), used, unknown, false); err != nil {
			return err
		}
	}
	if used != (amounts{}) || unknown != 0 { // a limit that is made later today counts it too
		for _, a := range task.DailyAccounts(e.Task.Task, r) {
			if err := tx.post(a, amounts{}, used, unknown, false); err != nil {
				return err
			}
		}
	}
	if held == (limits{}) {
		return nil
	}
	if err := tx.lend(r.Lender, held.sum().minus(used)); err != nil {
		return err
	}
	spent := envelope.Budget{Tokens: &used[0], USDCents: &used[1]}
	return tx.logBudget(e, task.KindBudgetSettled, booked{Attempt: r.Attempt, Reserved: r.Reserved, Spent: spent, Unknown: unknown > 0})
}

// lend changes what a run may spend, and its accounts with it, unless it is over. It never
// has less than nothing.
func (tx *Tx) lend(lender task.RunName, change amounts) error {
	if lender == (task.RunName{}) || change == (amounts{}) {
		return nil
	}
	e, stored, err := tx.run(lender)
	if err != nil || stored == nil || stored.Settled {
		return err
	}
	r, err := stored.Decode()
	if err != nil {
		return err
	}
	held := limitsOf(r.Reserved)
	var now limits
	for i, has := range held {
		if has == nil {
			change[i] = 0
			continue
		}
		left := max(0, *has+change[i])
		now[i], change[i] = &left, left-*has
	}
	stored.Reserved = envelope.Budget{Tokens: now[0], USDCents: now[1]}
	tx.row(e, index.RunRow(stored))
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, change, amounts{}, 0, false); err != nil {
			return err
		}
	}
	return nil
}

// post adds to an account, and sets its limit if it is to.
func (tx *Tx) post(a task.Account, reserved, spent amounts, unknown int, limit bool) error {
	b, known, err := tx.balance(a.Owner, a.Day)
	if err != nil {
		return err
	}
	if limit || !known {
		b.Limit = a.Limit
	}
	b.Reserved.Tokens, b.Reserved.USDCents = b.Reserved.Tokens+reserved[0], b.Reserved.USDCents+reserved[1]
	b.Spent.Tokens, b.Spent.USDCents = b.Spent.Tokens+spent[0], b.Spent.USDCents+spent[1]
	b.Unknown += unknown
	put(&tx.own.accounts, account{a.Owner, a.Day}, b)
	tx.row(nil, index.AccountRow(b))
	return nil
}

// Balance returns an account on a day; an account of which nothing was reserved or spent is
// empty.
func (tx *Tx) Balance(owner, day string) (task.Balance, error) {
	b, _, err := tx.balance(owner, day)
	return b, err
}

func (tx *Tx) balance(owner, day string) (b task.Balance, known bool, err error) {
	for _, l := range [...]*layer{tx.own, tx.group, &tx.ledger.base.layer} {
		if b, known := l.accounts[account{owner, day}]; known {
			return b, true, nil
		}
	}
	b, err = tx.ledger.index.Balance(background, owner, day)
	return b, b != (task.Balance{Account: task.Account{Owner: owner, Day: day}}), err
}

// TreeCost adds up what a task and those below it have spent (AINL-46).
func (tx *Tx) TreeCost(seq int64) (cost task.TreeCost, err error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return cost, err
	}
	runs, err := tx.runs(e)
	if err != nil {
		return cost, err
	}
	for _, r := range runs {
		held, known := limitsOf(r.Reserved), limits{r.Tokens, r.USDCents}
		spent, reserved := amounts{}, held.sum()
		if r.Settled {
			for i := range spent {
				if spent[i] = known.sum()[i]; known[i] == nil {
					spent[i] = reserved[i]
				}
			}
			reserved = amounts{}
		}
		cost.Spent.Tokens, cost.Spent.USDCents = cost.Spent.Tokens+spent[0], cost.Spent.USDCents+spent[1]
		cost.Reserved.Tokens, cost.Reserved.USDCents = cost.Reserved.Tokens+reserved[0], cost.Reserved.USDCents+reserved[1]
	}
	children, err := tx.children(seq)
	for _, c := range children {
		below, err := tx.TreeCost(c.Seq)
		if err != nil {
			return cost, err
		}
		cost.Spent.Tokens, cost.Spent.USDCents = cost.Spent.Tokens+below.Spent.Tokens, cost.Spent.USDCents+below.Spent.USDCents
		cost.Reserved.Tokens, cost.Reserved.USDCents = cost.Reserved.Tokens+below.Reserved.Tokens, cost.Reserved.USDCents+below.Reserved.USDCents
	}
	return cost, err
}

// booked is what an event of a budget says.
type booked struct {
	Attempt  int             `json:"attempt"`
	Reserved envelope.Budget `json:"reserved"`
	Spent    envelope.Budget `json:"spent,omitzero"`
	Unknown  bool            `json:"unknown,omitzero"`  // it counts as it was reserved
	Accounts []string        `json:"accounts,omitzero"` // which it counts for
}

func spelled(accounts []task.Account) (list []string) {
	for _, a := range accounts {
		list = append(list, a.Owner+" "+a.Day)
	}
	return list
}

func (tx *Tx) logBudget(e *entry, kind task.Kind, what booked) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return tx.Log(task.Event{Time: time.Now(), Kind: kind, Data: data, Of: e.Seq})
}

// amounts are one number for each thing that is counted: tokens, US cents.
type amounts [2]int64

// limits are amounts that may be missing: no limit, or not known.
type limits [2]*int64

func limitsOf(b envelope.Budget) limits { return limits{b.Tokens, b.USDCents} }

// sum takes a missing amount for zero.
func (l limits) sum() (a amounts) {
	for i, n := range l {
		if n != nil {
			a[i] = *n
		}
	}
	return a
}

func (a amounts) minus(b amounts) amounts { return amounts{a[0] - b[0], a[1] - b[1]} }

// countable bounds what an agent reports.
func countable(n *int64) *int64 {
	if n == nil {
		return nil
	}
	within := max(0, min(*n, task.MaxAmount))
	return &within
}
