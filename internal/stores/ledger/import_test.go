package ledger

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// The file version13.tar.gz has what a killed daemon of schema version 13 left: tasks 1 to 8 are in the
// tables, and 9 to 16 in the redo log. Of four tasks, one has a run that was intended, one a run that
// goes on, one has ended, and one is queued.
func TestVersion13IsImportedWithItsRedoLog(t *testing.T) {
	path := unpackVersion13(t)
	l, opened, err := Open(path)
	if err != nil || opened != (Opened{}) {
		t.Fatalf("Open() = %+v, %v; want the ledger of version 13", opened, err)
	}
	wantVersion13(t, l)
	for _, end := range redoEnds {
		if _, err := os.Lstat(path + end); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left, or %v", end, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, opened, err := Open(path)
	if err != nil || opened != (Opened{}) {
		t.Fatalf("Open(again) = %+v, %v; want the ledger", opened, err)
	}
	defer again.Close()
	wantVersion13(t, again)
}

func TestARedoLogIsNotImportedTwice(t *testing.T) {
	path := unpackVersion13(t)
	redo := filepath.Join(t.TempDir(), "kept")
	copyFiles(t, path, redo, redoEnds[:]...)
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	killed := copyLedger(t, path)
	copyFiles(t, redo, killed, redoEnds[:]...) // it was killed before it removed them
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	after, opened, err := Open(killed)
	if err != nil || opened != (Opened{}) {
		t.Fatalf("Open() = %+v, %v; want the ledger", opened, err)
	}
	defer after.Close()
	wantVersion13(t, after)
}

// The redo log of version 12 may have what version 13 takes out of the tables.
func TestWhatTheRedoLogOfAnOlderVersionHasIsBroughtForwardToo(t *testing.T) {
	path := unpackVersion13(t)
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 12")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, opened, err := Open(path)
	if err != nil || opened != (Opened{}) {
		t.Fatalf("Open() = %+v, %v; want the ledger of version 12", opened, err)
	}
	events, err := l.Events(t.Context(), "", 0, 100)
	if err != nil || len(events) != 20 {
		t.Errorf("Events() = %d, %v; want 20", len(events), err)
	}
	for _, e := range events {
		if bytes.Contains(e.Data, []byte("CANARY")) {
			t.Errorf("event %d still has the secret", e.Seq)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("CANARY")) {
		t.Errorf("the file of the ledger still has the secret: %v", err)
	}
}

func TestADamagedRedoLogIsNotImported(t *testing.T) {
	for what, spoil := range map[string]func(log []byte) []byte{
		"the first frame is cut off":            func(log []byte) []byte { return log[block:] },
		"a byte of the second frame is changed": func(log []byte) []byte { log[block+40] ^= 1; return log },
		"a byte of the first length is changed": func(log []byte) []byte { log[1] ^= 1; return log },
		"a file is missing":                     func([]byte) []byte { return nil },
	} {
		for _, end := range redoEnds {
			t.Run(what+end, func(t *testing.T) {
				path := unpackVersion13(t)
				text, err := os.ReadFile(path + end)
				if err != nil {
					t.Fatal(err)
				}
				if text = spoil(text); text != nil {
					err = os.WriteFile(path+end, text, 0o600)
				} else {
					err = os.Remove(path + end)
				}
				if err != nil {
					t.Fatal(err)
				}
				l, opened, err := Open(path)
				if err != nil || opened.Aside == "" || !strings.Contains(opened.Cause.Error(), "redo log") {
					t.Fatalf("Open() = %+v, %v; want the ledger aside, because of its redo log", opened, err)
				}
				defer l.Close()
				if _, err := os.Stat(opened.Aside + redoEnds[0]); err != nil && what != "a file is missing" {
					t.Errorf("the redo log was not moved with it: %v", err)
				}
			})
		}
	}
}

func unpackVersion13(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open("testdata/version13.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for entries := tar.NewReader(text); ; {
		entry, err := entries.Next()
		if err == io.EOF {
			return filepath.Join(dir, "ledger.db")
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(entries)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, entry.Name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantVersion13(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := t.Context()
	rows, err := l.Tasks(ctx, Filter{})
	if err != nil || len(rows) != 16 {
		t.Fatalf("Tasks() = %d, %v; want 16", len(rows), err)
	}
	for i, row := range rows {
		n := i + 1
		state := []task.State{task.Queued, task.Running, task.Running, task.Done}[n%4]
		raw, err1 := l.Raw(ctx, row.Seq)
		runs, err2 := l.Runs(ctx, row.Seq)
		events, err3 := l.Events(ctx, row.ID, 0, 10)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if row.Seq != int64(n) || row.ID != envelope.ID(fmt.Sprint("t", n)) || row.State != state ||
			row.Priority != n%2 || string(raw) != fmt.Sprint("line ", n) || len(events) != 1 {
			t.Errorf("task %d = %+v with %q and %d events; want it %s", n, row, raw, len(events), state)
		}
		if wantRuns := min(n%4, 1); len(runs) != wantRuns {
			t.Errorf("task %d has %d runs; want %d", n, len(runs), wantRuns)
		}
		if n%4 >= 2 && (runs[0].PID != 100+n || runs[0].Finished.IsZero() != (n%4 == 2)) {
			t.Errorf("the run of task %d = %+v", n, runs[0])
		}
		if result, err := l.Result(ctx, row.Seq); state == task.Done && (err != nil || string(result) != fmt.Sprint("result ", n)) {
			t.Errorf("Result(%d) = %s, %v", n, result, err)
		}
	}
	files, err1 := l.Files(ctx)
	letters, err2 := l.DeadLetters(ctx, 1<<20)
	if err := errors.Join(err1, err2); err != nil || len(files) != 1 || files[0].Offset != 16 || len(letters) != 16 ||
		string(letters[15].Line) != "letter 16" {
		t.Errorf("files %+v, %d dead letters, %v; want one read up to 16, and 16", files, len(letters), err)
	}
	wantCounts(t, l)
	wantOpen(t, l, "ann", 12)
}
