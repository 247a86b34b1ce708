package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestASnapshotHasOneMomentOfALedgerThatIsBeingWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	add(t, l, newTask(1), newTask(2))
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for n := 3; ; n += 2 {
			select {
			case <-stop:
				return
			default: // two tasks in one transaction
				if err := l.Update(context.Background(), func(tx *ledger.Tx) error {
					for i := range 2 {
						if _, err := tx.Add(newTask(n+i), []byte("{}")); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range 5 {
		copied := filepath.Join(t.TempDir(), fmt.Sprint(i))
		r, err := ledger.OpenReader(path)
		if err == nil {
			err = r.WriteSnapshot(t.Context(), copied)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		snapshot := openAt(t, copied)
		n, err := snapshot.Count(t.Context(), ledger.Filter{})
		if err != nil || n < 2 || n%2 != 0 {
			t.Errorf("the snapshot has %d tasks, %v; want at least the first two, and no half of a transaction", n, err)
		}
	}
	close(stop)
	writer.Wait()
}

func TestASnapshotNeverReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	openAt(t, path)
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.WriteSnapshot(t.Context(), path); err == nil {
		t.Error("a snapshot in the place of the ledger was written")
	}
}

func TestARestoredLedgerIsLostUntilItsLinesAreReadAgain(t *testing.T) {
	l := open(t)
	update(t, l, func(tx *ledger.Tx) error { return tx.NoteRestored(time.Now(), time.Now()) })
	if lost, err := l.Lost(t.Context()); !lost || err != nil {
		t.Errorf("Lost() = %t, %v after the restoration; want true", lost, err)
	}
	events, err := l.Events(t.Context(), "", 0, 10)
	if err != nil || len(events) != 1 || events[0].Kind != task.KindLedgerRestored {
		t.Errorf("Events() = %v, %v; want one ledger.restored", events, err)
	}
	update(t, l, func(tx *ledger.Tx) error { return tx.MarkRecovered() })
	if lost, err := l.Lost(t.Context()); lost || err != nil {
		t.Errorf("Lost() = %t, %v after MarkRecovered; want false", lost, err)
	}
}
