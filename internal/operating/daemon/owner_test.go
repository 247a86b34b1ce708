package daemon

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A task whose answer can't be read is held with an open run, which is awaited again once it is released.
func TestARunIsPastOnceTheLedgerHasItsEnd(t *testing.T) {
	l, _, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := task.Assignment{Runner: "gpu-1", Incarnation: "i", Token: "1-1-1-1-x"}
	update := func(change func(tx *ledger.Tx) error) {
		t.Helper()
		if err := l.Update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *ledger.Tx) error {
		seq, err := tx.Add(task.Task{ID: "t", Revision: 1, State: task.Held, Attempt: 1}, nil)
		return errors.Join(err, tx.StartRun(task.Run{Task: seq, Attempt: 1, ID: "r", Intent: time.Now(), At: at}))
	})
	r := &resources{ledger: l}
	want := func(when, runner string, past fleet.Past) {
		t.Helper()
		if got, err := r.pastOf(fleet.Token(at.Token), runner); err != nil || got != past {
			t.Errorf("%s the past is %d, %v; want %d", when, got, err, past)
		}
	}
	want("of an open run", "gpu-1", fleet.PastOpen)
	want("for another runner", "cpu-1", fleet.PastUnknown)
	update(func(tx *ledger.Tx) error { return tx.ReleaseRun(1, 1) })
	want("of a run that never began", "gpu-1", fleet.PastClosed)
	update(func(tx *ledger.Tx) error {
		second := task.Run{Task: 1, Attempt: 2, ID: "r2", Intent: time.Now(), At: task.Assignment{Runner: "gpu-1", Token: "1-1-1-2-x"}}
		err := tx.StartRun(second)
		second.Finished = time.Now()
		return errors.Join(err, tx.FinishRun(second))
	})
	at.Token = "1-1-1-2-x"
	want("of a run with an answer", "gpu-1", fleet.PastSettled)
}
