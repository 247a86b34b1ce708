package ledger

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func TestTheLogIsEmptiedWhenNothingIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, path := openWith(t, "a")
		if logSize(t, path) == 0 {
			t.Error("there is no log after a commit")
		}
		time.Sleep(3 * idleAfter)
		synctest.Wait()
		if size := logSize(t, path); size != 0 {
			t.Errorf("the log has %d bytes after a while; want none", size)
		}
		if err := addNamed(l, "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * idleAfter)
		synctest.Wait()
		if size := logSize(t, path); size != 0 {
			t.Errorf("the log has %d bytes a while after another commit; want none", size)
		}
		if last, err := readLast(path); err != nil || last.base != last.number {
			t.Errorf("the file -last = %+v, %v; want all commits in the main file", last, err)
		}
	})
}

// Under load the log is never idle.
func TestALongLogStartsAgainFromItsBeginning(t *testing.T) {
	l, path := openWith(t, "a")
	for n := range 12 { // 8 MB each, which are due
		err := l.Update(t.Context(), func(tx *Tx) error {
			row := task.Task{ID: envelope.ID(fmt.Sprint("large", n)), Revision: 1, State: task.Queued}
			_, err := tx.Add(row, bytes.Repeat([]byte("x"), lookBytes))
			return err
		})
		if err == nil {
			err = l.shortenLog() // or soon, by itself
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if size := logSize(t, path); size > 5*lookBytes {
		t.Errorf("the log has %d MB after 96; want it begun anew", size>>20)
	}
}

// A program that reads for long has the log grow, and keeps no other one from writing.
func TestALongReadKeepsNobodyFromWriting(t *testing.T) {
	l, path := openWith(t, "a")
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.db.QueryContext(t.Context(), "SELECT seq FROM tasks")
	if err != nil || !rows.Next() {
		t.Fatalf("a read that goes on: %v", err)
	}
	if err := addNamed(l, "b"); err != nil {
		t.Error(err)
	}
	l.emptyIdleLog()
	if l.emptyIdleLog() {
		t.Error("the log was emptied under a reader")
	}
	if err := addNamed(l, "c"); err != nil {
		t.Error(err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	l.emptyIdleLog()
	if !l.emptyIdleLog() {
		t.Error("the log was not emptied after the last read")
	}
	wantTasks(t, l, "a", "b", "c")
}

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
