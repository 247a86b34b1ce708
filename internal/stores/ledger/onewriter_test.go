package ledger

import (
	"bytes"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"mailboxd/envelope"
)

// goroutine returns the number of the goroutine that calls it.
func goroutine() string {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)]
	return string(bytes.Fields(text)[1])
}

func TestOnlyOneGoroutineUsesTheWritingConnection(t *testing.T) {
	l, _ := openWith(t, "first")
	writers := map[string]int{}
	note := func(*Tx) error { writers[goroutine()]++; return nil }
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() {
			if err := errors.Join(l.Update(t.Context(), note), l.UpdateSoon(t.Context(), note)); err != nil {
				t.Error(err)
			}
			if !l.betweenGroups(func() { _ = note(nil) }) {
				t.Error("betweenGroups(of an open ledger) = false")
			}
		})
	}
	crowd.Wait()
	if len(writers) != 1 || writers[goroutine()] != 0 {
		t.Errorf("functions ran in goroutines %v; want one, and not the caller's %s", writers, goroutine())
	}
}

func TestAnUpdateOfAClosedLedgerSaysSo(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return l.Update(t.Context(), func(*Tx) error { return nil }) },
		func() error { return l.UpdateSoon(t.Context(), func(*Tx) error { return nil }) },
		func() error { return addNamed(l, envelope.ID("late")) },
	} {
		if err := write(); !errors.Is(err, ErrClosed) {
			t.Errorf("an update of a closed ledger = %v; want ErrClosed", err)
		}
	}
	if l.betweenGroups(func() { t.Error("it ran after Close") }) {
		t.Error("betweenGroups(of a closed ledger) = true")
	}
}
