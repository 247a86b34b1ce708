package ledger_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestVerifyFindsAPageThatNoStartReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Add(task.Task{ID: "t1", Revision: 1, State: task.Done}, bytes.Repeat([]byte("x"), 1<<20))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Verify(t.Context()); err != nil {
		t.Errorf("Verify beside a writer = %v; want nil", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 8192
	at := bytes.Index(text, bytes.Repeat([]byte("x"), 3*page)) / page
	copy(text[(at+1)*page:], bytes.Repeat([]byte{0xff}, 4)) // the pointer to the next overflow page
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Verify(t.Context()); err == nil {
		t.Error("Verify of a broken page = nil; want an error")
	}
}
