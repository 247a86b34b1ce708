package ledger

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestASnapshotWaitsForWhatTheTablesMiss(t *testing.T) {
	l, path := openWith(t, "a")
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := r.WriteSnapshot(short, filepath.Join(t.TempDir(), "early.db")); !errors.Is(err, errBehind) {
		t.Errorf("WriteSnapshot(without a task that is durable) = %v; want %v", err, errBehind)
	}
	copied := filepath.Join(t.TempDir(), "copied.db")
	if err := errors.Join(l.flush(), r.WriteSnapshot(t.Context(), copied)); err != nil {
		t.Fatal(err)
	}
	wantInSnapshot(t, copied)
}

// Nobody else brings to the tables what a killed daemon left.
func TestASnapshotTakesUpTheRedoLogOfADaemonThatWasKilledMeanwhile(t *testing.T) {
	_, path := openWith(t, "a")
	left := copyLedger(t, path)
	daemon, err := openRedo(left)
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(left)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := daemon.close(); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copied.db")
	if err := r.WriteSnapshot(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	wantInSnapshot(t, copied)
}

func wantInSnapshot(t *testing.T, path string) {
	t.Helper()
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wantTasks(t, l, "a")
}
