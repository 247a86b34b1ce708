package ledger_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/ledger"
)

func TestANewLedgerIsForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, opened, err := ledger.Open(path)
	if err != nil || opened != (ledger.Opened{Created: true}) {
		t.Fatalf("Open() = %+v, %v; want it created", opened, err)
	}
	defer l.Close()
	add(t, l, newTask(1))
	for name, mode := range map[string]fs.FileMode{
		"journal": fs.ModeDir | 0o700, "journal/00000001.jsonl": 0o600, "index.db": 0o600, "index.db-wal": 0o600, "index.db-shm": 0o600,
	} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode {
			t.Errorf("mode of %s = %v; want %v", name, info.Mode(), mode)
		}
	}
}

func TestAPathIsOnlyAPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?mode=memory&%41#b", "ledger.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l := openAt(t, path)
	add(t, l, newTask(1))
	if _, err := os.Stat(indexOf(path)); err != nil {
		t.Errorf("the index is not where it was opened: %v", err)
	}
	r, err := ledger.OpenReader(copyOf(t, path))
	if err != nil {
		t.Fatalf("OpenReader() = %v; want nil", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close() = %v; want nil", err)
	}
}

func TestANewerLedgerIsRefusedAndNotTouched(t *testing.T) {
	for what, change := range map[string]func(path string){
		"index": func(path string) {
			removeAll(t, indexOf(path), "", "-wal", "-shm")
			run(t, indexOf(path), "CREATE TABLE tasks (future); PRAGMA user_version = 1000")
		},
		"journal": func(path string) {
			removeAll(t, indexOf(path), "", "-wal", "-shm")
			text, err := os.ReadFile(segment(path))
			if err != nil {
				t.Fatal(err)
			}
			write(t, segment(path), append([]byte(`{"version":2,`), text[1:]...))
		},
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		closeNow(t, path, 3)
		change(path)
		before := names(t, ledger.Dir(path))
		if r, err := ledger.OpenReader(path); !errors.Is(err, ledger.ErrNewer) {
			t.Errorf("%s: OpenReader() = %v, %v; want ErrNewer", what, r, err)
		}
		_, opened, err := ledger.Open(path)
		if !errors.Is(err, ledger.ErrNewer) || opened != (ledger.Opened{}) {
			t.Errorf("%s: Open() = %+v, %v; want ErrNewer and nothing moved", what, opened, err)
		}
		if diff := cmp.Diff(before, names(t, ledger.Dir(path))); diff != "" {
			t.Errorf("%s: the newer ledger was changed:\n%s", what, diff)
		}
	}
}

// spoils are the ways in which a journal comes to be none.
var spoils = map[string]func(t *testing.T, path string){
	"not a journal": func(t *testing.T, path string) {
		write(t, segment(path), []byte("precious text, and no journal at all\n"))
	},
	"a lost header":   func(t *testing.T, path string) { overwrite(t, segment(path), 0, make([]byte, 100)) },
	"a changed event": func(t *testing.T, path string) { overwrite(t, segment(path), 700, []byte("#")) },
	"a lost half": func(t *testing.T, path string) {
		if err := os.Truncate(segment(path), 4096); err != nil {
			t.Fatal(err)
		}
	},
	"an older copy": func(t *testing.T, path string) {
		other := filepath.Join(t.TempDir(), "ledger.db")
		closeNow(t, other, 2)
		if err := os.RemoveAll(ledger.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(ledger.Dir(other), ledger.Dir(path)); err != nil {
			t.Fatal(err)
		}
	},
}

func TestAnUnreadableLedgerIsMovedAsideAndReported(t *testing.T) {
	for what, spoil := range spoils {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			closeNow(t, path, 20)
			if what != "an older copy" {
				removeAll(t, indexOf(path), "", "-wal", "-shm") // or nobody reads what it has
			}
			spoil(t, path)
			before := len(names(t, ledger.Dir(path)))
			if r, err := ledger.OpenReader(path); err == nil && what != "an older copy" {
				t.Error("OpenReader() = nil; want an error")
				r.Close()
			} else if err == nil {
				if err := r.Verify(t.Context()); err != nil {
					t.Errorf("Verify() = %v", err)
				}
				r.Close()
			}
			l, opened, err := ledger.Open(path)
			if err != nil || !opened.Created || opened.Aside == "" || opened.Cause == nil {
				t.Fatalf("Open() = %+v, %v; want the journal moved aside and why", opened, err)
			}
			defer l.Close()
			if tasks, err := l.Tasks(t.Context(), ledger.Filter{}); err != nil || len(tasks) != 0 {
				t.Errorf("the new ledger has %d tasks, %v; want none", len(tasks), err)
			}
			add(t, l, newTask(1))
			if after := len(names(t, opened.Aside)); after != before {
				t.Errorf("%d files were moved aside; want %d", after, before)
			}
		})
	}
}

func TestWhatWasMovedAsideIsNotOverwrittenByTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	asides := map[string]bool{}
	for range 3 {
		closeNow(t, path, 1)
		removeAll(t, indexOf(path), "", "-wal", "-shm")
		spoils["not a journal"](t, path)
		l, opened, err := ledger.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		asides[opened.Aside] = true
	}
	if len(asides) != 3 {
		t.Errorf("three ledgers were moved to %v; want three names", asides)
	}
}

func TestALedgerThatCannotBeReachedIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "ledger.db")
	if _, opened, err := ledger.Open(path); err == nil || opened.Lost() {
		t.Errorf("Open(in no directory) = %+v, %v; want an error", opened, err)
	}
}

// closeNow makes a ledger, or opens it, adds n tasks and closes it.
func closeNow(t *testing.T, path string, n int) {
	t.Helper()
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		update(t, l, func(tx *ledger.Tx) error {
			_, known, err := tx.Latest(newTask(i).ID)
			if err == nil && !known {
				_, err = tx.Add(newTask(i), nil)
			}
			return err
		})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// run executes SQL on the file at path, past the ledger.
func run(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
