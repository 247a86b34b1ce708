package backup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// The task file of a run in a sandbox is in the state directory. What was read of it is not
// read again.
func TestAMoveKeepsTheReadingPositionInATaskFileOfARun(t *testing.T) {
	from, to := twoDisks(t)
	read := readRunFile(t, from)
	if err := Move(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.OpenReader(to.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := cursors(t.Context(), r)
	if err != nil || len(all) != 1 {
		t.Fatalf("the ledger has the reading positions %+v, %v; want one", all, err)
	}
	var now unix.Stat_t
	if err := unix.Stat(filepath.Join(to.State, read.Path), &now); err != nil {
		t.Fatal(err)
	}
	if c := all[0]; c.Path != read.Path || c.Offset != read.Offset || c.Dev != now.Dev || c.Inode != now.Ino {
		t.Errorf("the reading position is %+v; want that of the inode %d on device %d", c, now.Ino, now.Dev)
	}
}

// readRunFile makes a ledger of a mailbox where the task file of a run was read.
func readRunFile(t *testing.T, at Location) mailbox.Cursor {
	t.Helper()
	dir, err := mailbox.RunFilesDir(at.State)
	name := mailbox.RunFile{Run: "11111111-2222-3333-4444-555555555555", ID: "a", Revision: 1, Attempt: 1}.Path(at.State)
	if err == nil && filepath.Dir(name) != dir {
		err = errors.New("the file of a run is not in the directory for it")
	}
	if err := errors.Join(err, os.WriteFile(name, []byte(line), 0o600)); err != nil {
		t.Fatal(err)
	}
	state, err := mailbox.OpenState(at.State, at.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	tail := state.RunTail(nil, mailbox.TailOptions{})
	batch, err := tail.Next()
	if err := errors.Join(err, tail.Close()); err != nil || batch.Cursor.Offset != int64(len(line)) {
		t.Fatalf("the file was read up to %+v, %v; want its end", batch.Cursor, err)
	}
	l, _, err := ledger.Open(at.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	err = l.Update(t.Context(), func(tx *ledger.Tx) error { tx.SetFile(ledger.File(batch.Cursor)); return nil })
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return batch.Cursor
}
