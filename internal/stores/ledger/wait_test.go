package ledger_test

import (
	"slices"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestAKeyWakesTheTasksThatAreHeldForIt(t *testing.T) {
	l := open(t)
	first := task.Wait{Reason: task.After, Key: task.AfterKey("first")}
	held := task.Change{To: task.Held, Reasons: []task.Reason{task.After}, Waits: []task.Wait{first}}
	seqs := add(t, l, task.Task{ID: "a", Revision: 1, State: task.Received}, task.Task{ID: "b", Revision: 1, State: task.Received})
	move := func(seq int64, from task.State, c task.Change) {
		update(t, l, func(tx *ledger.Tx) error {
			_, err := tx.Move(seq, from, 0, c)
			return err
		})
	}
	woken := func(want ...int64) {
		t.Helper()
		if got := waiting(t, l, first.Key); !slices.Equal(got, want) {
			t.Errorf("%v wait for %s; want %v", got, first.Key, want)
		}
	}
	move(seqs[1], task.Received, held)
	move(seqs[0], task.Received, held)
	woken(seqs...)
	move(seqs[0], task.Held, task.Change{To: task.Held, Reasons: []task.Reason{task.After, task.Operator}})
	woken(seqs...)
	move(seqs[0], task.Held, task.Change{To: task.Held, Reasons: []task.Reason{task.Operator}})
	woken(seqs[1])
	move(seqs[1], task.Held, task.Change{To: task.Queued})
	woken()
}

// waiting returns the tasks that wait for what a key names.
func waiting(t *testing.T, l *ledger.Ledger, key task.Key) (seqs []int64) {
	t.Helper()
	waiters, err := l.Waiting(t.Context(), key, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range waiters {
		seqs = append(seqs, w.Task)
	}
	return seqs
}

func TestATaskThatWaitedForBudgetKeepsItsPlaceInTheQueue(t *testing.T) {
	l := open(t)
	short := task.Wait{Reason: task.Capacity, Key: task.AccountKey("agent:a", "2026-03-09"), Needs: "50 of 100 tokens"}
	held := task.Change{To: task.Held, Reasons: []task.Reason{task.Capacity}, Waits: []task.Wait{short}}
	seqs := add(t, l, task.Task{ID: "a", Revision: 1, State: task.Queued}, task.Task{ID: "b", Revision: 1, State: task.Queued})
	move := func(seq int64, from task.State, c task.Change) {
		t.Helper()
		update(t, l, func(tx *ledger.Tx) error {
			moved, err := tx.Move(seq, from, 0, c)
			if !moved {
				t.Errorf("task %d did not move from %s", seq, from)
			}
			return err
		})
	}
	want := func(when string, want ...int64) {
		t.Helper()
		if got := waiting(t, l, short.Key); !slices.Equal(got, want) {
			t.Errorf("%v wait %s; want %v", got, when, want)
		}
		keys, err := l.BudgetsWaitedFor(t.Context())
		if err != nil || len(keys) != min(len(want), 1) {
			t.Errorf("BudgetsWaitedFor = %v, %v %s", keys, err, when)
		}
	}
	move(seqs[1], task.Queued, held)
	move(seqs[0], task.Queued, held)
	want("when both are held", seqs...)
	move(seqs[0], task.Held, task.Change{To: task.Queued})
	want("when the first was woken", seqs...)
	if waits, err := l.Waits(t.Context(), seqs[0]); err != nil || !slices.Equal(waits, []task.Wait{short}) {
		t.Errorf("Waits = %v, %v; want what it waited for", waits, err)
	}
	move(seqs[0], task.Queued, task.Change{To: task.Held, Reasons: []task.Reason{task.Paused}})
	want("when the first is paused", seqs[1])
	move(seqs[1], task.Held, task.Change{To: task.Queued})
	update(t, l, func(tx *ledger.Tx) error {
		for _, want := range []bool{true, false} {
			if waited, err := tx.EndWaits(seqs[1]); err != nil || waited != want {
				t.Errorf("EndWaits = %t, %v; want %t", waited, err, want)
			}
		}
		return nil
	})
	want("when the other one begins")
}
