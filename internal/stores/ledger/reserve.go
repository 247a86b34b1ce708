package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// An account is the sum of its runs, always: what changes a run's reservation
// or its spending changes its accounts in the same transaction.

// reserve takes what a run may spend from its lender, and notes it in its
// accounts.
func (tx *Tx) reserve(r task.Run) error {
	held := limitsOf(r.Reserved)
	if held == (limits{}) {
		return nil
	}
	if err := tx.lend(r.Lender, amounts{}.minus(held.sum())); err != nil {
		return err
	}
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, held.sum(), amounts{}, 0); err != nil {
			return err
		}
		_, err := tx.exec("UPDATE accounts SET limit_tokens = ?, limit_cents = ? WHERE owner = ? AND day = ?",
			a.Limit.Tokens, a.Limit.USDCents, a.Owner, a.Day)
		if err != nil {
			return err
		}
	}
	return tx.logBudget(r, task.KindBudgetReserved, booked{Attempt: r.Attempt, Reserved: r.Reserved, Accounts: spelled(r.Terms.Accounts)})
}

// ReleaseRun gives back what was reserved for a run that never began.
func (tx *Tx) ReleaseRun(seq int64, attempt int) error {
	run, found, err := tx.Run(task.RunName{Task: seq, Attempt: attempt})
	if err == nil && found && run.Started.IsZero() && !run.Settled {
		err = tx.settle(run)
	}
	if err != nil {
		return fmt.Errorf("release run %d of task %d: %w", attempt, seq, err)
	}
	return nil
}

// settle ends a run, and counts what it has spent, as far as it is known. What is
// unknown counts as it was reserved, unless nothing was started.
func (tx *Tx) settle(r task.Run) error {
	held, known := limitsOf(r.Reserved), limits{r.Tokens, r.USDCents}
	kept := r
	if kept.Settled = true; !r.MayHaveSpent() {
		kept.Reserved = envelope.Budget{}
	}
	if err := tx.setRun(kept); err != nil {
		return err
	}
	if held == (limits{}) && known.sum() == (amounts{}) {
		return nil // as most
	}
	used, unknown := known.sum(), 0
	for i := range used {
		if known[i] == nil && held[i] != nil && r.MayHaveSpent() {
			used[i], unknown = *held[i], 1
		}
	}
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, amounts{}.minus(held.sum()), used, unknown); err != nil {
			return err
		}
	}
	if err := tx.postUnlimited(r, used, unknown); err != nil {
		return err
	}
	if held == (limits{}) {
		return nil
	}
	if err := tx.lend(r.Lender, held.sum().minus(used)); err != nil {
		return err
	}
	spent := envelope.Budget{Tokens: &used[0], USDCents: &used[1]}
	return tx.logBudget(r, task.KindBudgetSettled, booked{Attempt: r.Attempt, Reserved: r.Reserved, Spent: spent, Unknown: unknown > 0})
}

// postUnlimited counts spending for those for whom it is not limited too: a
// limit that is made later today finds it.
func (tx *Tx) postUnlimited(r task.Run, used amounts, unknown int) error {
	if used == (amounts{}) && unknown == 0 {
		return nil
	}
	t, found, err := tx.Task(r.Task)
	if err != nil || !found {
		return err
	}
	for _, a := range task.DailyAccounts(t, r) {
		if err := tx.post(a, amounts{}, used, unknown); err != nil {
			return err
		}
	}
	return nil
}

// lend changes what a run may spend, and its accounts with it, unless it is
// over. It never has less than nothing.
func (tx *Tx) lend(lender task.RunName, change amounts) error {
	if lender == (task.RunName{}) || change == (amounts{}) {
		return nil
	}
	r, found, err := tx.Run(lender)
	if err != nil || !found || r.Settled {
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
	r.Reserved = envelope.Budget{Tokens: now[0], USDCents: now[1]}
	if err := tx.setRun(r); err != nil {
		return err
	}
	for _, a := range r.Terms.Accounts {
		if err := tx.post(a, change, amounts{}, 0); err != nil {
			return err
		}
	}
	return nil
}

// post adds to an account.
func (tx *Tx) post(a task.Account, reserved, spent amounts, unknown int) error {
	_, err := tx.exec(`INSERT INTO accounts (`+balanceColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, day) DO UPDATE SET
		reserved_tokens = reserved_tokens + excluded.reserved_tokens, reserved_cents = reserved_cents + excluded.reserved_cents,
		spent_tokens = spent_tokens + excluded.spent_tokens, spent_cents = spent_cents + excluded.spent_cents, unknown = unknown + excluded.unknown`,
		a.Owner, a.Day, a.Limit.Tokens, a.Limit.USDCents, reserved[0], reserved[1], spent[0], spent[1], unknown)
	return err
}

// booked is the data of an event about a budget.
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

// logBudget adds an event to the run's task.
func (tx *Tx) logBudget(r task.Run, kind task.Kind, what booked) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return tx.Log(task.Event{Time: time.Now(), Kind: kind, Data: data, Of: r.Task})
}
