package ledger_test

import (
	"errors"
	"path/filepath"
	"testing"

	"mailboxd/internal/stores/ledger"
)

func TestAMissingLedgerIsALossWhereThereAreTracesOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, opened, err := ledger.Open(path, "runs", "keepers")
	if err != nil || !opened.Lost() || !errors.Is(opened.Cause, ledger.ErrMissing) {
		t.Fatalf("Open() = %+v, %v; want a loss, for it is missing", opened, err)
	}
	if lost, err := l.Lost(t.Context()); err != nil || !lost {
		t.Errorf("Lost() = %v, %v; want true", lost, err)
	}
	events, err := l.Events(t.Context(), "", 0, 10)
	if err != nil || len(events) != 1 || events[0].Kind != "ledger.lost" {
		t.Errorf("Events() = %+v, %v; want that it was lost", events, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, opened, err = ledger.Open(path, "runs", "keepers"); err != nil || opened != (ledger.Opened{}) {
		t.Fatalf("Open(again) = %+v, %v; want the ledger", opened, err)
	}
	defer l.Close()
}
