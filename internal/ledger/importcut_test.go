package ledger_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/ledgerimport"
)

// killAtWrite has this process end at its n-th write.
func killAtWrite(n int64) {
	var writes atomic.Int64
	fault.FailReads(func(string) error {
		if writes.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	})
}

func TestAnImportThatIsKilledAnywhereIsMadeByTheNextStart(t *testing.T) {
	whole := earlier(t)
	importNow(t, whole)
	want := verifyJournal(t, whole)
	for n, killed := 1, true; killed; n++ {
		path := earlier(t)
		for range 2 { // the second start as well
			cmd := play(t, "importer", path)
			cmd.Env = append(cmd.Env, "LEDGER_TEST_KILL="+strconv.Itoa(n))
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
				t.Fatalf("write %d: %v", n, err)
			}
			killed = err != nil
			if err := ledgerimport.Check(path); err != nil && !errors.Is(err, ledgerimport.ErrNewer) {
				t.Errorf("killed at write %d: the earlier version finds %v; want its ledger, or that it is newer", n, err)
			}
		}
		wantImport(t, path, want)
	}
}

func TestAnImportThatFailsAnywhereIsMadeByTheNextStart(t *testing.T) {
	whole := earlier(t)
	importNow(t, whole)
	want := verifyJournal(t, whole)
	full := errors.New("no space left")
	for n, failed := int64(1), true; failed; n++ {
		path, writes := earlier(t), int64(0)
		undo := fault.FailReads(func(string) error {
			if writes++; writes == n {
				return full
			}
			return nil
		})
		l, opened, err := ledger.Open(path)
		undo()
		failed = writes >= n
		if err == nil {
			closeLedger(t, l) // the head is written later
		} else if !errors.Is(err, full) || opened != (ledger.Opened{}) {
			t.Errorf("write %d fails: Open() = %+v, %v; want that error, and nothing moved", n, opened, err)
		}
		wantImport(t, path, want)
	}
}

// wantImport starts once more and checks what the import has left.
func wantImport(t *testing.T, path string, end [32]byte) {
	t.Helper()
	l, opened, err := ledger.Open(path)
	if err != nil || opened != (ledger.Opened{}) {
		t.Fatalf("Open() = %+v, %v; want nil and nothing lost", opened, err)
	}
	wantAnswers(t, l)
	closeLedger(t, l)
	if got := verifyJournal(t, path); got != end {
		t.Error("the journal is another one than that of a start that nothing disturbs")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "index.db") {
			names = append(names, e.Name())
		}
	}
	if want := []string{"journal", "ledger.db", "ledger.db.imported"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the state directory has %v, %v; want %v", names, err, want)
	}
	for name, want := range map[string]error{"": ledgerimport.ErrNewer, ".imported": nil} {
		if err := ledgerimport.Check(path + name); !errors.Is(err, want) {
			t.Errorf("ledger.db%s is %v; want %v", name, err, want)
		}
	}
}

// An earlier version refuses what the import leaves, and changes nothing.
func TestADowngradeIsRefused(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ledgerimport.Check(path); !errors.Is(err, ledgerimport.ErrNewer) {
		t.Errorf("Check() = %v; want ErrNewer", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the mark was changed, or %v", err)
	}
}

// A ledger that began as a journal is marked too, by its second start.
func TestANewJournalIsMarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for n := range 3 {
		l, _, err := ledger.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, newTask(n))
		closeLedger(t, l)
	}
	if err := ledgerimport.Check(path); !errors.Is(err, ledgerimport.ErrNewer) {
		t.Errorf("Check() = %v; want ErrNewer", err)
	}
}

func TestAMarkWithoutAJournalIsALostLedger(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	if err := os.RemoveAll(ledger.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l, opened, err := ledger.Open(path)
	if err != nil || !opened.Lost() || !errors.Is(opened.Cause, ledger.ErrMissing) {
		t.Fatalf("Open() = %+v, %v; want that the ledger is missing", opened, err)
	}
	closeLedger(t, l)
}

// Nobody knows which of two ledgers is to be used.
func TestAnEarlierLedgerBesideAJournalIsRefused(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	if err := os.Rename(path+".imported", path); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, ledger.Dir(path))
	if _, opened, err := ledger.Open(path); err == nil || opened != (ledger.Opened{}) {
		t.Errorf("Open() = %+v, %v; want an error and nothing moved", opened, err)
	}
	if !maps.Equal(before, filesOf(t, ledger.Dir(path))) || ledgerimport.Check(path) != nil {
		t.Error("one of the two was changed")
	}
	if err := os.RemoveAll(ledger.Dir(path)); err != nil { // a person decides for the earlier one
		t.Fatal(err)
	}
	l := openAt(t, path)
	wantAnswers(t, l)
}

func TestAReaderIsToldThatAnEarlierLedgerIsNotImportedYet(t *testing.T) {
	path := earlier(t)
	if _, err := ledger.OpenReader(path); err == nil || !strings.Contains(err.Error(), "earlier version") {
		t.Errorf("OpenReader() = %v; want that the daemon imports it", err)
	}
	importNow(t, path)
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if tasks, err := r.Tasks(t.Context(), ledger.Filter{All: true}); err != nil || len(tasks) != 9 {
		t.Errorf("Tasks() = %v, %v; want 9", ids(tasks), err)
	}
}

// damage are ways in which an earlier ledger becomes unreadable.
var damage = map[string]func(t *testing.T, path string){
	"not SQLite":       func(t *testing.T, path string) { write(t, path, []byte("precious text, and no database at all")) },
	"empty":            func(t *testing.T, path string) { write(t, path, nil) },
	"another database": func(t *testing.T, path string) { runSQL(t, path, "PRAGMA user_version = 0") },
	"another schema":   func(t *testing.T, path string) { runSQL(t, path, "DROP TABLE runs") },
	"no losses":        func(t *testing.T, path string) { runSQL(t, path, "DROP TABLE losses") }, // found by the import
	"a lost header":    func(t *testing.T, path string) { overwrite(t, path, 0, make([]byte, 100)) },
	"a lost page":      func(t *testing.T, path string) { overwrite(t, path, 2*8192, bytes.Repeat([]byte{0xee}, 8192)) },
	"a changed byte in the redo log": func(t *testing.T, path string) {
		overwrite(t, path+"-redo1", 1, []byte{0xee}) // of the length of the first frame
	},
	"a redo log of which a file is missing": func(t *testing.T, path string) {
		if err := os.Remove(path + "-redo1"); err != nil {
			t.Fatal(err)
		}
	},
	"a redo log alone": func(t *testing.T, path string) {
		if err := errors.Join(os.Remove(path), os.Remove(path+"-wal")); err != nil {
			t.Fatal(err)
		}
	},
}

func TestAnUnreadableEarlierLedgerIsMovedAside(t *testing.T) {
	for what, spoil := range damage {
		t.Run(what, func(t *testing.T) {
			path := earlier(t)
			spoil(t, path)
			l, opened, err := ledger.Open(path)
			if err != nil || !opened.Lost() || opened.Aside == "" || opened.Cause == nil {
				t.Fatalf("Open() = %+v, %v; want the ledger moved aside, and why", opened, err)
			}
			defer closeLedger(t, l)
			if lost, err := l.Lost(t.Context()); err != nil || !lost {
				t.Errorf("Lost() = %v, %v; want true", lost, err)
			}
			if tasks, err := l.Tasks(t.Context(), ledger.Filter{}); err != nil || len(tasks) != 0 {
				t.Errorf("the new ledger has %d tasks, %v; want none", len(tasks), err)
			}
			left, err := filepath.Glob(path + "*")
			if err != nil || slices.ContainsFunc(left, func(name string) bool { return name[:min(len(name), len(opened.Aside))] != opened.Aside }) {
				t.Errorf("left are %v, %v; want everything below %s", left, err, opened.Aside)
			}
		})
	}
}

func TestANewerLedgerThanTheMarkIsNotTouched(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	runSQL(t, path, "PRAGMA user_version = 10")
	before := filesOf(t, ledger.Dir(path))
	if _, opened, err := ledger.Open(path); !errors.Is(err, ledger.ErrNewer) || opened != (ledger.Opened{}) {
		t.Errorf("Open() = %+v, %v; want ErrNewer and nothing moved", opened, err)
	}
	if _, err := ledger.OpenReader(path); !errors.Is(err, ledger.ErrNewer) {
		t.Errorf("OpenReader() = %v; want ErrNewer", err)
	}
	if !maps.Equal(before, filesOf(t, ledger.Dir(path))) {
		t.Error("the journal was changed")
	}
}
