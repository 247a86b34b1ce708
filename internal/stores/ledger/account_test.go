package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// errCut is how a transaction of the test comes to nothing.
var errCut = errors.New("cut")

// A bank begins and ends runs at random, and adds up by itself what their
// accounts must say.
type bank struct {
	t    *testing.T
	dice *rand.Rand
	l    *ledger.Ledger
	seqs []int64
	open []task.Run
}

func newBank(t *testing.T, seed uint64, l *ledger.Ledger) *bank {
	b := &bank{t: t, dice: rand.New(rand.NewPCG(seed, 1)), l: l}
	for n := range 30 {
		row := newTask(n)
		row.Agent, row.Requester = fmt.Sprint("a", n%3), fmt.Sprint("r", n%2)
		if n > 0 && b.dice.IntN(2) == 0 {
			row.Parent = b.seqs[b.dice.IntN(n)]
		}
		b.seqs = append(b.seqs, add(t, l, row)...)
	}
	return b
}

func (b *bank) some(most int64) *int64 {
	if b.dice.IntN(4) == 0 {
		return nil
	}
	n := b.dice.Int64N(most)
	return &n
}

// begin reserves for the next attempt of a task, sometimes out of what another
// run has.
func (b *bank) begin(tx *ledger.Tx) error {
	seq := b.seqs[b.dice.IntN(len(b.seqs))]
	last, _, err := tx.LastRun(seq)
	if err != nil {
		return err
	}
	r := task.Run{
		Task: seq, Attempt: last.Attempt + 1, ID: "r", Intent: noon.Add(time.Duration(b.dice.IntN(30)) * time.Hour),
		Reserved: envelope.Budget{Tokens: b.some(1000), USDCents: b.some(10)},
	}
	if len(b.open) > 0 && b.dice.IntN(2) == 0 {
		lender := b.open[b.dice.IntN(len(b.open))]
		r.Lender, r.Terms.Accounts = task.RunName{Task: lender.Task, Attempt: lender.Attempt}, slices.Clone(lender.Terms.Accounts)
		if now, _, err := tx.Run(r.Lender); err != nil || now.Settled {
			return err
		} else if r.Reserved = least(r.Reserved, now.Reserved); r.Reserved == (envelope.Budget{}) {
			return nil
		}
	} else {
		r.Terms.Accounts = []task.Account{{Owner: "requester:r0", Day: task.Day(r.Intent)}, {Owner: "agent:a1", Day: task.Day(r.Intent)}}
	}
	b.open = append(b.open, r)
	return tx.StartRun(r)
}

// least is what a lender can lend of what is asked for.
func least(asked, has envelope.Budget) envelope.Budget {
	smaller := func(a, b *int64) *int64 {
		if a == nil || b != nil && *b < *a {
			return b
		}
		return a
	}
	return envelope.Budget{Tokens: smaller(asked.Tokens, has.Tokens), USDCents: smaller(asked.USDCents, has.USDCents)}
}

// end ends a run in one of the ways there are.
func (b *bank) end(tx *ledger.Tx) error {
	if len(b.open) == 0 {
		return nil
	}
	at := b.dice.IntN(len(b.open))
	r := b.open[at]
	b.open = slices.Delete(b.open, at, at+1)
	switch b.dice.IntN(5) {
	case 0:
		return tx.VoidRun(r.Task, r.Attempt)
	case 1:
		return tx.ReleaseRun(r.Task, r.Attempt)
	case 2:
		return tx.FinishRun(task.Run{Task: r.Task, Attempt: r.Attempt, ExitCode: -1}) // could not be started
	case 3:
		return tx.FinishRun(task.Run{Task: r.Task, Attempt: r.Attempt, Cause: "lost"})
	}
	known := task.Run{Task: r.Task, Attempt: r.Attempt, Started: noon, Finished: noon, Tokens: b.some(2000), USDCents: b.some(20)}
	return errors.Join(tx.FinishRun(known), tx.FinishRun(known)) // once more does nothing
}

// step does something, in a transaction that may come to nothing.
func (b *bank) step() {
	b.t.Helper()
	open, cut := slices.Clone(b.open), b.dice.IntN(4) == 0
	err := b.l.Update(context.Background(), func(tx *ledger.Tx) error {
		do := b.begin
		if b.dice.IntN(2) == 0 {
			do = b.end
		}
		if err := do(tx); err != nil || !cut {
			return err
		}
		return errCut
	})
	if cut {
		b.open = open
	}
	if err != nil && !errors.Is(err, errCut) {
		b.t.Fatal(err)
	}
}

// owed is what the runs say of an account.
func (b *bank) owed(owner, day string) (sum task.Balance) {
	b.t.Helper()
	sum.Owner, sum.Day = owner, day
	for _, seq := range b.seqs {
		row, err := b.l.Task(b.t.Context(), seq)
		runs, listed := b.l.Runs(b.t.Context(), seq)
		if err := errors.Join(err, listed); err != nil {
			b.t.Fatal(err)
		}
		for _, r := range runs {
			named := slices.ContainsFunc(r.Terms.Accounts, func(a task.Account) bool { return a.Owner == owner && a.Day == day })
			beside := slices.ContainsFunc(task.DailyAccounts(row, r), func(a task.Account) bool { return a.Owner == owner && a.Day == day })
			if named || beside {
				count(&sum.Reserved.Tokens, &sum.Spent.Tokens, r.Tokens, r.Reserved.Tokens, r.Settled, named)
				count(&sum.Reserved.USDCents, &sum.Spent.USDCents, r.USDCents, r.Reserved.USDCents, r.Settled, named)
				lost := func(known, held *int64) bool { return known == nil && held != nil }
				if r.Settled && (lost(r.Tokens, r.Reserved.Tokens) || lost(r.USDCents, r.Reserved.USDCents)) {
					sum.Unknown++
				}
			}
		}
	}
	return sum
}

func count(reserved, spent, known, held *int64, settled, named bool) {
	switch {
	case !settled && named && held != nil:
		*reserved += *held
	case settled && known != nil:
		*spent += *known
	case settled && held != nil:
		*spent += *held
	}
}

func TestAccountsAreTheSumOfTheirRuns(t *testing.T) {
	for seed := range uint64(6) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		l := openAt(t, path)
		b := newBank(t, seed, l)
		for range 150 {
			b.step()
		}
		for _, day := range []string{"2026-03-09", "2026-03-10"} {
			for _, owner := range []string{"requester:r0", "requester:r1", "agent:a0", "agent:a1", "agent:a2"} {
				got, err := l.Balance(t.Context(), owner, day)
				if err != nil {
					t.Fatal(err)
				}
				got.Limit = envelope.Budget{}
				if diff := cmp.Diff(b.owed(owner, day), got); diff != "" {
					t.Errorf("seed %d: the runs of %s on %s (-) and its account (+):\n%s", seed, owner, day, diff)
				}
			}
		}
	}
}

func amount(n int64) *int64 { return &n }

func TestWhatIsLentComesFromTheLenderAndGoesBack(t *testing.T) {
	l := open(t)
	parent := add(t, l, newTask(1))[0]
	row := newTask(2)
	row.Parent = parent
	child := add(t, l, row)[0]
	account := []task.Account{{Owner: "requester:x", Day: task.Day(noon)}}
	update(t, l, func(tx *ledger.Tx) error {
		return errors.Join(
			tx.StartRun(task.Run{Task: parent, Attempt: 1, Intent: noon, Reserved: envelope.Budget{Tokens: amount(1000)}, Terms: task.Terms{Accounts: account}}),
			tx.StartRun(task.Run{Task: child, Attempt: 1, Intent: noon, Reserved: envelope.Budget{Tokens: amount(300)}, Lender: task.RunName{Task: parent, Attempt: 1}, Terms: task.Terms{Accounts: account}}),
		)
	})
	want := func(left, reserved, spent int64) {
		t.Helper()
		has, err := l.Reserved(t.Context(), task.RunName{Task: parent, Attempt: 1})
		b, err2 := l.Balance(t.Context(), "requester:x", task.Day(noon))
		if err := errors.Join(err, err2); err != nil || *has.Tokens != left || b.Reserved.Tokens != reserved || b.Spent.Tokens != spent {
			t.Errorf("the parent has %d, %d are reserved and %d spent, %v; want %d, %d, %d", *has.Tokens, b.Reserved.Tokens, b.Spent.Tokens, err, left, reserved, spent)
		}
	}
	want(700, 1000, 0)
	update(t, l, func(tx *ledger.Tx) error {
		return tx.FinishRun(task.Run{Task: child, Attempt: 1, Started: noon, Finished: noon, Tokens: amount(100), USDCents: amount(0)})
	})
	want(900, 900, 100)
	var members task.TreeCost
	update(t, l, func(tx *ledger.Tx) (err error) {
		members, err = tx.TreeCost(parent)
		return err
	})
	if want := (task.TreeCost{Spent: envelope.Cost{Tokens: 100}, Reserved: envelope.Cost{Tokens: 900}}); members != want {
		t.Errorf("Metric() = %+v; want %+v", members, want)
	}
}
