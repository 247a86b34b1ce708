package ledger

import (
	"errors"
	"os"
	"testing"

	"mailboxd/envelope"
)

// A reader that finds no daemon takes up the redo log. A daemon that has started by
// then does so itself.
func TestAReaderLeavesTheRedoLogToADaemonThatHasStartedMeanwhile(t *testing.T) {
	_, path := openWith(t, "a")
	copied := copyLedger(t, path)
	reader, err := newReader(copied, false) // which has found no daemon
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	before, _, err := reader.behind(copied)
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := openRedo(copied) // is about to take it up
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.takeUpRedo(copied); err == nil {
		t.Error("takeUpRedo(beside a daemon) = nil; want an error")
	}
	if applied, _, err := reader.behind(copied); applied != before || err != nil {
		t.Errorf("the tables have %d frames more, %v; want none", applied-before, err)
	}
	if err := daemon.close(); err != nil {
		t.Fatal(err)
	}
	if err := reader.takeUpRedo(copied); err != nil {
		t.Errorf("takeUpRedo(without a daemon) = %v; want nil", err)
	}
	if applied, frames, err := reader.behind(copied); applied != before+1 || len(frames) != 0 || err != nil {
		t.Errorf("the tables have %d frames more, and miss %d, %v; want the one that there is", applied-before, len(frames), err)
	}
}

// Somebody who looks for long at what a killed daemon left, say in a pager, keeps no
// daemon from starting.
func TestADaemonStartsWhileSomebodyReadsWhatAKilledOneLeft(t *testing.T) {
	_, path := openWith(t, "a")
	copied := copyLedger(t, path)
	reader, err := OpenReader(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
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

// What the tables alone say may be long over, so a reader that cannot have the rest
// says so instead. Here a ledger of before was put back beside a redo log of later.
func TestAReaderDoesNotTakeTablesForTheTruthBehindWhichARedoLogIsMissing(t *testing.T) {
	l, path := openWith(t, "a")
	before := copyLedger(t, path)
	for _, id := range []envelope.ID{"b", "c"} { // so the frame that comes first is overwritten
		if err := errors.Join(l.flush(), addNamed(l, id)); err != nil {
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
