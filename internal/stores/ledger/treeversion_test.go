package ledger

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
)

// CLUTCH-05: the tid of a CLowl request that version 9 has is the run of its tree.
func TestVersion9GetsTheRunsOfItsTrees(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "ledger.db")
	makeVersion(t, path, 9, `INSERT INTO tasks (seq, id, revision, latest, state, attempt, reasons, status, kind, put, delivered,
			replaces, agent, requester, type, dialect, hash, result_sum, file, offset, parent) VALUES
			(1, 't1', 1, 1, 'done', 0, '', '', '', 0, 0, 0, '', '', '', 'clowl', '', '', '', 0, 0),
			(2, 't2', 1, 1, 'done', 0, '', '', '', 0, 0, 0, '', '', '', 'clowl', '', '', '', 0, 1),
			(3, 't3', 1, 1, 'done', 0, '', '', '', 0, 0, 0, '', '', '', 'clowl', '', '', '', 0, 0);
		INSERT INTO talks (task, message, thread, trace, tie, told, open, rounds) VALUES
			(1, 'm1', 'c', 'x1', '', 0, 0, 0), (2, 'm2', 'c', 'x1', 'assist', 0, 0, 0), (3, 'm3', 'c', '', '', 0, 0, 0)`)
	l, opened, err := Open(path)
	if err != nil || opened.Aside != "" {
		t.Fatalf("Open() = %+v, %v; want the ledger of version 9", opened, err)
	}
	defer l.Close()
	for seq, want := range map[int64]string{1: "x1", 2: "x1", 3: "t3"} {
		row, err := l.Task(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		if run, err := l.RunOf(ctx, row); run != want || err != nil {
			t.Errorf("RunOf(%s) = %q, %v; want %q", row.ID, run, err, want)
		}
	}
}

// makeVersion makes a ledger of an older version of the schema, and runs a script on it.
func makeVersion(t *testing.T, path string, version int, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	for step := 1; step <= version && err == nil; step++ {
		err = runStep(t.Context(), conn, step)
	}
	if err == nil {
		_, err = conn.ExecContext(t.Context(), script)
	}
	if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
}
