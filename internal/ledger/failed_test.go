package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A COMMIT that failed may be on the disk all the same, where nobody sees it before
// a power cut. What is done anew after it does not meet it there.
func TestACommitThatFailedIsNotMetByWhatCameInstead(t *testing.T) {
	l, path := openWith(t, "a")
	copied := copyLedger(t, path)
	onDisk, _, err := Open(copied) // where the COMMIT did not fail
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	if err := addBySQL(onDisk); err != nil {
		t.Fatal(err)
	}
	failToCommit(t, l)
	if err := addNamed(l, "b"); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "ledger.db")
	copyFiles(t, copied, cut, "", "-wal")
	copyFiles(t, path, cut, redoEnds[0], redoEnds[1])
	after, opened, err := Open(cut)
	if err != nil || opened.Aside != "" {
		t.Fatalf("Open(after a power cut) = %+v, %v; want the ledger", opened, err)
	}
	defer after.Close()
	wantTasks(t, after, "a", "b")
	wantTasks(t, l, "a", "b")
}

// The next COMMIT takes its place on the disk, also that of a group without a change.
func TestACommitThatFailedIsWrittenOver(t *testing.T) {
	l, _ := openWith(t, "a")
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	failToCommit(t, l)
	before, _, err := first(background, l.idleReader.read, scanExtent, extentQuery)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Update(t.Context(), func(*Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	now, _, err := first(background, l.idleReader.read, scanExtent, extentQuery)
	if err != nil || now == before {
		t.Errorf("the tables have %d frames, %v; want another number than before the COMMIT that failed", now.applied, err)
	}
	if err := addNamed(l, "b"); err != nil {
		t.Fatal(err)
	}
	wantTasks(t, l, "a", "b")
}

// openWith makes a ledger with one task, which nothing brings to the tables by itself.
func openWith(t *testing.T, id envelope.ID) (l *Ledger, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ledger.db")
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	l.timed.Store(true) // so no fold becomes due
	if err := addNamed(l, id); err != nil {
		t.Fatal(err)
	}
	return l, path
}

// addBySQL adds a task in a transaction of SQLite.
func addBySQL(l *Ledger) error {
	return l.Update(background, func(tx *Tx) error {
		if _, _, err := tx.Conversation(1); err != nil {
			return err
		}
		_, err := tx.Add(task.Task{ID: "b", Revision: 1, State: task.Queued}, nil)
		return err
	})
}

// failToCommit has the COMMIT of a new task fail.
func failToCommit(t *testing.T, l *Ledger) {
	t.Helper()
	for _, query := range []string{
		"CREATE TEMP TABLE unmet (task INTEGER PRIMARY KEY)",
		"CREATE TEMP TABLE unmetby (task INTEGER REFERENCES unmet (task) DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TEMP TRIGGER unmeet AFTER INSERT ON main.tasks BEGIN INSERT INTO unmetby VALUES (NEW.seq); END",
		"PRAGMA foreign_keys = ON",
	} {
		if _, err := l.conn.ExecContext(background, query); err != nil {
			t.Fatal(err)
		}
	}
	if err := addBySQL(l); err == nil {
		t.Fatal("Update(with a COMMIT that fails) = nil; want an error")
	}
	if _, err := l.conn.ExecContext(background, "DROP TRIGGER unmeet"); err != nil {
		t.Fatal(err)
	}
}

// copyLedger copies a ledger as a power cut would leave it.
func copyLedger(t *testing.T, path string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "ledger.db")
	copyFiles(t, path, copied, besides...)
	return copied
}

func copyFiles(t *testing.T, from, to string, ends ...string) {
	t.Helper()
	for _, end := range ends {
		if data, err := os.ReadFile(from + end); err == nil && end != "-shm" {
			if err := os.WriteFile(to+end, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
