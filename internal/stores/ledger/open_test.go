package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestANewLedgerIsForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, opened, err := ledger.Open(path)
	if err != nil || opened != (ledger.Opened{Created: true}) {
		t.Fatalf("Open() = %+v, %v; want it created", opened, err)
	}
	defer l.Close()
	add(t, l, newTask(1))
	for _, end := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + end)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("mode of ledger.db%s = %v, %v; want 0600", end, info.Mode(), err)
		}
	}
}

func TestAPathIsOnlyAPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?mode=memory&%41#b", "ledger.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, openAt(t, path), newTask(1))
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the ledger is not where it was opened: %v", err)
	}
	if r, err := ledger.OpenReader(path); err != nil {
		t.Errorf("OpenReader() = %v; want nil", err)
	} else if err := r.Close(); err != nil {
		t.Errorf("Close() = %v; want nil", err)
	}
}

func TestVersion1IsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	script, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(t, path, string(script))
	l, ctx := openAt(t, path), context.Background()

	rows, err := l.Revisions(ctx, "report")
	if err != nil || len(rows) != 2 {
		t.Fatalf("Revisions() = %v, %v; want 2", ids(rows), err)
	}
	held := rows[1]
	if held.State != task.Held || !held.Latest || !held.Replaces || len(held.Reasons) != 2 || held.Deadline.Year() != 9999 {
		t.Errorf("revision 2 = %+v; want it held for two reasons with a deadline in 9999", held)
	}
	if !held.Received.Equal(time.Date(2026, 3, 9, 12, 0, 2, 0, time.UTC)) {
		t.Errorf("received at %v; want noon and 2 seconds", held.Received)
	}
	result, err := l.Result(ctx, rows[0].Seq)
	if err != nil || string(result) != `{"status":"ok"}` {
		t.Errorf("Result() = %s, %v", result, err)
	}
	runs, err := l.Runs(ctx, rows[0].Seq)
	if err != nil || len(runs) != 1 || *runs[0].Tokens != 7 || runs[0].USDCents != nil {
		t.Errorf("Runs() = %+v, %v; want one of 7 tokens and unknown cents", runs, err)
	}
	events, err := l.Events(ctx, "", 0, 10)
	if err != nil || len(events) != 2 || events[0].Task != "report" || events[1].Task != "" {
		t.Errorf("Events() = %+v, %v; want one of the task and one of none", events, err)
	}
	files, err := l.Files(ctx)
	if err != nil || len(files) != 1 || files[0].Offset != 1234 {
		t.Errorf("Files() = %+v, %v; want one read up to 1234", files, err)
	}
	if seqs := add(t, l, named("next", 1, task.Queued)); seqs[0] != 3 {
		t.Errorf("the next task has seq %d; want 3", seqs[0])
	}
}

func TestANewerLedgerIsRefusedAndNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	run(t, path, "CREATE TABLE tasks (future); PRAGMA user_version = 1000")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, opened, err := ledger.Open(path)
	if !errors.Is(err, ledger.ErrNewer) || opened != (ledger.Opened{}) {
		t.Errorf("Open() = %+v, %v; want ErrNewer and nothing moved", opened, err)
	}
	if _, err := ledger.OpenReader(path); !errors.Is(err, ledger.ErrNewer) {
		t.Errorf("OpenReader() = %v; want ErrNewer", err)
	}
	both := fmt.Sprintf("version is 1000, and this mailboxd knows versions up to %d;", ledger.SchemaVersion)
	if err == nil || !strings.Contains(err.Error(), both) {
		t.Errorf("Open() = %v; want both versions: %s", err, both)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the newer ledger was changed, or %v", err)
	}
}

// spoils are the ways in which the bytes of a ledger come to be none.
var spoils = map[string]func(t *testing.T, path string){
	"not SQLite":       func(t *testing.T, path string) { write(t, path, []byte("precious text, and no database at all")) },
	"empty":            func(t *testing.T, path string) { write(t, path, nil) },
	"another database": func(t *testing.T, path string) { run(t, path, "CREATE TABLE recipes (cake TEXT)") },
	"another schema": func(t *testing.T, path string) {
		run(t, path, "CREATE TABLE tasks (cake TEXT); PRAGMA user_version = 1")
	},
	"a lost header": func(t *testing.T, path string) { overwrite(t, path, 0, make([]byte, 100)) },
	"a lost page":   func(t *testing.T, path string) { overwrite(t, path, 4096, bytes.Repeat([]byte{0xee}, 4096)) },
	"a lost half": func(t *testing.T, path string) {
		if err := os.Truncate(path, 8192); err != nil {
			t.Fatal(err)
		}
	},
	"a log alone": func(t *testing.T, path string) {
		if err := os.Rename(path, path+"-wal"); err != nil {
			t.Fatal(err)
		}
	},
}

func TestAnUnreadableLedgerIsMovedAsideAndReported(t *testing.T) {
	for what, spoil := range spoils {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ledger.db")
			closeNow(t, path, 20)
			spoil(t, path)
			before := contents(t, dir)

			l, opened, err := ledger.Open(path)
			if err != nil || !opened.Created || opened.Aside == "" || opened.Cause == nil {
				t.Fatalf("Open() = %+v, %v; want the file moved aside and why", opened, err)
			}
			defer l.Close()
			if tasks, err := l.Tasks(t.Context(), ledger.Filter{}); err != nil || len(tasks) != 0 {
				t.Errorf("the new ledger has %d tasks, %v; want none", len(tasks), err)
			}
			add(t, l, newTask(1))
			after := contents(t, dir)
			for name, data := range before {
				moved := filepath.Base(opened.Aside) + name[len("ledger.db"):]
				if after[moved] != data {
					t.Errorf("%s is not what %s was", moved, name)
				}
			}
		})
	}
}

func TestWhatWasMovedAsideIsNotOverwrittenByTheNext(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	asides := map[string]bool{}
	for _, text := range []string{"first", "second", "third"} {
		write(t, path, []byte(text))
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
	if _, opened, err := ledger.Open(path); !errors.Is(err, fs.ErrNotExist) || opened != (ledger.Opened{}) {
		t.Errorf("Open(in no directory) = %+v, %v; want fs.ErrNotExist", opened, err)
	}
}

func TestACreationThatWasCutShortIsStartedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	write(t, path+".new", []byte("half"))
	write(t, path+".new-wal", []byte("half"))
	add(t, openAt(t, path), newTask(1))
}

// closeNow makes a ledger of n tasks and closes it.
func closeNow(t *testing.T, path string, n int) {
	t.Helper()
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		add(t, l, newTask(i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// run executes SQL on the file at path, past the ledger.
func run(t *testing.T, path, script string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
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

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(data)
	}
	return found
}

// The columns of version 20 say that a run of an earlier version was on this machine.
func TestRunsOfVersion19WereOnThisMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var scripts []string
	for version := range 19 {
		script, err := os.ReadFile(fmt.Sprintf("schema/%d.sql", version+1))
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, string(script))
	}
	run(t, path, strings.Join(scripts, "\n")+
		"INSERT INTO runs (task, attempt, run_id, intent, pid, pid_start, boot, exit_code, signal, cause, terms) "+
		"VALUES (1, 1, 'r-1', 1, 7, 8, 'b', 0, '', '', '{}'); PRAGMA user_version = 19")
	l := openAt(t, path)
	runs, err := l.Runs(t.Context(), 1)
	if err != nil || len(runs) != 1 || runs[0].PID != 7 || runs[0].At.IsRemote() {
		t.Errorf("Runs() = %+v, %v; want one of process 7 on this machine", runs, err)
	}
}
