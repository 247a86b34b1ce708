package ledgerimport_test

import (
	"testing"

	"mailboxd/internal/ledgerimport"
	"mailboxd/internal/task"
)

// What is read ahead is what is there, also when somebody changes it meanwhile.
func TestARequestThatIsReadAheadIsNeverOld(t *testing.T) {
	l := open(t)
	seqs := add(t, l, newTask(1), newTask(2), newTask(3), newTask(4))
	changes := map[string]func(*ledgerimport.Tx, int64) error{
		"by the redo log": func(tx *ledgerimport.Tx, seq int64) error {
			_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Held})
			return err
		},
		"by the tables": func(tx *ledgerimport.Tx, seq int64) error {
			if _, _, err := tx.Conversation(seq); err != nil {
				return err
			}
			_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Held})
			return err
		},
		"once it is folded": func(tx *ledgerimport.Tx, seq int64) error {
			_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Held})
			return err
		},
	}
	at := 0
	for name, change := range changes {
		if _, err := l.LastEvent(t.Context()); err != nil { // all is in the tables
			t.Fatal(err)
		}
		r, err := l.ReadAhead(t.Context(), seqs[3], seqs[:3])
		if err != nil || r.Seq != seqs[3] || string(r.Raw) == "" {
			t.Fatalf("ReadAhead() = %v %q, %v; want the last task and its line", r.Task, r.Raw, err)
		}
		if _, ok := l.Remembered(seqs[at]); !ok {
			t.Errorf("%s: a task that was read ahead is not remembered", name)
		}
		update(t, l, func(tx *ledgerimport.Tx) error { return change(tx, seqs[at]) })
		if name == "once it is folded" {
			if _, err := l.LastEvent(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r, ok := l.Remembered(seqs[at]); ok {
			t.Errorf("%s: the task is remembered as %s; want it forgotten", name, r.State)
		}
		if r, err := l.ReadAhead(t.Context(), seqs[at], nil); err != nil || r.State != task.Held {
			t.Errorf("%s: ReadAhead() = %s, %v; want held", name, r.State, err)
		}
		at++
	}
}
