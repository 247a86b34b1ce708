package ledger

import (
	"mailboxd/internal/task"
	"testing"
)

// Two may read ahead at once, and the later one does not vouch for what the
// earlier one read before a change.
func TestWhatWasReadBeforeAChangeIsNotRememberedAfterIt(t *testing.T) {
	l, _ := openWith(t, "a")
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	seq := l.lastTask
	reading := &Request{}
	var fast []Request
	for range l.expect(reading, []int64{seq}) {
		row, err := l.idleReader.Task(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		fast = append(fast, Request{Task: row})
	}
	err := l.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Running, Attempt: 1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	l.expect(&Request{}, []int64{seq}) // somebody else is about to read it
	l.remember(reading, fast)
	var again bool
	err = l.Update(t.Context(), func(tx *Tx) (err error) {
		again, err = tx.Move(seq, task.Queued, 0, task.Change{To: task.Running, Attempt: 1})
		return err
	})
	if err != nil || again {
		t.Errorf("Move(of a task that runs) = %v, %v; want false", again, err)
	}
}
