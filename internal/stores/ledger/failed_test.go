package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// A COMMIT that failed may have left its rows in the log, where no reader sees them before
// a power cut. What is done anew after it does not meet them there.
func TestACommitThatFailedIsNotMetByWhatCameInstead(t *testing.T) {
	l, path := openWith(t, "a")
	failToCommit(t, l)
	wantTasks(t, l, "a")
	if err := addNamed(l, "b"); err != nil {
		t.Fatal(err)
	}
	wantTasks(t, l, "a", "b")
	after, opened, err := Open(copyLedger(t, path))
	if err != nil || opened.Aside != "" {
		t.Fatalf("Open(after a power cut) = %+v, %v; want the ledger", opened, err)
	}
	defer after.Close()
	wantTasks(t, after, "a", "b")
}

// After a sync that failed, another one on the same descriptor succeeds without the data.
func TestTheConnectionIsOpenedAnewAfterACommitThatFailed(t *testing.T) {
	l, path := openWith(t, "a")
	before := l.writer.conn
	undo := fault.FailReads(func(name string) error {
		if name == "write ledger" {
			return unix.EIO
		}
		return nil
	})
	err := addNamed(l, "b")
	undo()
	if !errors.Is(err, unix.EIO) {
		t.Errorf("Update(on a disk that fails) = %v; want its error", err)
	}
	if err := addNamed(l, "b"); err != nil || l.writer.conn == before {
		t.Errorf("Update(after that) = %v, by the same connection: %t; want another one", err, l.writer.conn == before)
	}
	wantTasks(t, l, "a", "b")
	if last, err := readLast(path); err != nil || last.number != l.writer.committed.number {
		t.Errorf("the file -last has commit %d, %v; want %d", last.number, err, l.writer.committed.number)
	}
}

// Whatever keeps a transaction from beginning, a lock excepted, does not last longer than the connection.
func TestTheConnectionIsOpenedAnewAfterATransactionThatDidNotBegin(t *testing.T) {
	l, _ := openWith(t, "a")
	if _, err := l.writer.conn.ExecContext(background, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := addNamed(l, "b"); err == nil {
		t.Fatal("Update(within a transaction) = nil; want an error")
	}
	if err := addNamed(l, "b"); err != nil {
		t.Fatal(err)
	}
	wantTasks(t, l, "a", "b")
}

// SQLite may end a transaction by itself. What would come after that would be kept alone.
func TestNothingIsWrittenAfterAStatementThatFailed(t *testing.T) {
	l, _ := openWith(t, "a")
	err := l.Update(t.Context(), func(tx *Tx) error {
		_, _ = tx.Add(task.Task{ID: "a", Revision: 1, State: task.Queued}, nil)
		if _, err := tx.Add(task.Task{ID: "b", Revision: 1, State: task.Queued}, nil); err == nil {
			t.Error("Add(after one that failed) = nil; want an error")
		}
		return nil
	})
	if err == nil {
		t.Error("Update(with a statement that failed) = nil; want an error")
	}
	wantTasks(t, l, "a")
}

// What writes nothing needs no sync.
func TestAGroupThatWritesNothingCommitsNothing(t *testing.T) {
	l, _ := openWith(t, "a")
	before := l.writer.committed.number
	err := l.Update(t.Context(), func(tx *Tx) error {
		_, _, err := tx.Latest("a")
		return err
	})
	if err != nil || l.writer.committed.number != before {
		t.Errorf("Update(of a look) = %v, with %d commits; want none", err, l.writer.committed.number-before)
	}
}

// A program that reads for long what a killed daemon left, say in a pager, keeps no
// daemon from starting.
func TestADaemonStartsWhileSomebodyReadsWhatAKilledOneLeft(t *testing.T) {
	_, path := openWith(t, "a")
	copied := copyLedger(t, path)
	reader, err := OpenReader(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	rows, err := reader.db.QueryContext(t.Context(), "SELECT seq FROM tasks")
	if err != nil || !rows.Next() {
		t.Fatalf("a read that goes on: %v", err)
	}
	defer rows.Close()
	l, opened, err := Open(copied)
	if err != nil || opened.Aside != "" {
		t.Fatalf("Open(beside a reader) = %+v, %v; want the ledger", opened, err)
	}
	defer l.Close()
	if err := addNamed(l, "b"); err != nil {
		t.Error(err)
	}
	wantTasks(t, l, "a", "b")
}

// openWith makes a ledger with one task.
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
	if err := addNamed(l, id); err != nil {
		t.Fatal(err)
	}
	return l, path
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
		if _, err := l.writer.conn.ExecContext(background, query); err != nil {
			t.Fatal(err)
		}
	}
	if err := addNamed(l, "b"); err == nil {
		t.Fatal("Update(with a COMMIT that fails) = nil; want an error")
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

func addNamed(l *Ledger, id envelope.ID) error {
	return l.Update(background, func(tx *Tx) error {
		_, err := tx.Add(task.Task{ID: id, Revision: 1, State: task.Queued}, nil)
		return err
	})
}

func wantTasks(t *testing.T, l *Ledger, want ...envelope.ID) {
	t.Helper()
	tasks, err := l.Tasks(t.Context(), Filter{})
	if err != nil || len(tasks) != len(want) {
		t.Fatalf("Tasks() = %d, %v; want %v", len(tasks), err, want)
	}
	for i, row := range tasks {
		if row.ID != want[i] {
			t.Errorf("task %d is %s; want %s", i, row.ID, want[i])
		}
	}
}
