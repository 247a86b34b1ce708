package ledger

import (
	"errors"
	"os"
	"testing"

	"mailboxd/envelope"
)

// A reader that finds no daemon takes up the redo log in a transaction. A daemon
// that has started by then does so itself, and nobody keeps it from writing.
func TestAReaderLeavesTheRedoLogToADaemonThatHasStartedMeanwhile(t *testing.T) {
	l, path := openWith(t, "a")
	copied := copyLedger(t, path)
	if err := l.fold(); err != nil {
		t.Fatal(err)
	}
	reader, err := newReader(copied) // which has found no daemon
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	daemon, err := openRedo(copied) // is about to take it up
	if err != nil {
		t.Fatal(err)
	}
	if whole, _ := reader.withRedo(copied); whole != nil {
		t.Error("withRedo(beside a daemon) = a reader that keeps the daemon from writing; want none")
		if err := whole.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := daemon.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := reader.withRedo(copied)
	if whole == nil || err != nil {
		t.Fatalf("withRedo(without a daemon) = %v, %v; want what the redo log has", whole, err)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
}

// What the tables alone say may be long over, so a reader that cannot have the rest
// says so instead. Here a ledger of before was put back beside a redo log of later.
func TestAReaderDoesNotTakeTablesForTheTruthBehindWhichARedoLogIsMissing(t *testing.T) {
	l, path := openWith(t, "a")
	before := copyLedger(t, path)
	for _, id := range []envelope.ID{"b", "c"} { // so the frame that comes first is overwritten
		if err := errors.Join(l.fold(), addNamed(l, id)); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range redoEnds {
		later, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(before+end, later, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenReader(before)
	if err == nil {
		t.Fatal(errors.Join(errors.New("OpenReader(tables without the frames that follow) = nil; want an error"), r.Close()))
	}
	if !errors.Is(err, errUnreadable) {
		t.Errorf("OpenReader() = %v; want it to say that the ledger cannot be read", err)
	}
}
