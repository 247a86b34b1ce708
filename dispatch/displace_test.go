package dispatch_test

import (
	"testing"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// Refused revisions of one task are shown at once, so a later one may be first.
func TestTheResultOfALaterRevisionIsNotMovedToTheHistory(t *testing.T) {
	parts := places(t)
	d, err := dispatch.Open(t.Context(), parts, obliging(nil), store.Options{Workers: 1, Queue: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var rows []task.Task
	for revision, result := range []string{"the first", "the second", "the third"} {
		row := rememberOf(t, parts.Ledger, task.Task{ID: "x", Revision: revision + 1, Latest: true, State: task.Queued, Replaces: revision > 0}, "")
		err := parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Move(row.Seq, task.Queued, 0, task.Change{To: task.Done, Status: envelope.Rejected, Result: []byte(result)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		row.State, row.Status = task.Done, envelope.Rejected
		rows = append(rows, row)
	}
	for _, revision := range []int{1, 3, 2} {
		d.ResumeRow(t.Context(), rows[revision-1])
	}
	if there, _, err := parts.Box.ReadResult("x"); err != nil || string(there) != "the third" {
		t.Errorf("the result is %q, %v; want that of revision 3", there, err)
	}
	for revision, want := range map[int]string{1: "the first", 2: "the second"} {
		if there, err := parts.State.History("x", revision); err != nil || string(there) != want {
			t.Errorf("the history has %q of revision %d, %v; want %q", there, revision, err, want)
		}
	}
}
