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
		if got, err := l.Woken(t.Context(), first.Key); err != nil || !slices.Equal(got, want) {
			t.Errorf("Woken(%s) = %v, %v; want %v", first.Key, got, err, want)
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
