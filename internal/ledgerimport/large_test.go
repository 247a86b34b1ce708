package ledgerimport

import (
	"bytes"
	"testing"

	"mailboxd/internal/task"
)

// A frame has an end, and what is more than that is durable all the same: as one
// result may be 64 MiB, so may be many at once.
func TestAGroupThatIsTooLargeForAFrameGoesToTheTables(t *testing.T) {
	l, _ := openWith(t, "a")
	last := l.redo.last
	err := l.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Add(task.Task{ID: "b", Revision: 1, State: task.Queued}, bytes.Repeat([]byte("x"), mostBytes+1))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.redo.last != last {
		t.Errorf("the redo log has a frame of more than %d bytes; want it in the tables", mostBytes)
	}
	wantTasks(t, l, "a", "b")
}
