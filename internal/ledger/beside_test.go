package ledger

import "testing"

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
	if whole := reader.withRedo(copied); whole != nil {
		t.Error("withRedo(beside a daemon) = a reader that keeps the daemon from writing; want none")
		if err := whole.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := daemon.close(); err != nil {
		t.Fatal(err)
	}
	whole := reader.withRedo(copied)
	if whole == nil {
		t.Fatal("withRedo(without a daemon) = nil; want what the redo log has")
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
}
