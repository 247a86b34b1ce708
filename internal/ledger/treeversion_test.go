package ledger

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// CLUTCH-05: the tid of a CLowl request that version 9 has is the run of its tree.
func TestVersion9GetsTheRunsOfItsTrees(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "ledger.db")
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = migrate(ctx, conn, migrations[:9])
	}
	if err == nil {
		old := newLayer()
		for seq, parent := range map[int64]int64{1: 0, 2: 1, 3: 0} {
			row := task.Task{Seq: seq, ID: envelope.ID("t" + string(rune(48+seq))), Revision: 1, Latest: true, Dialect: "clowl", State: task.Done, Parent: parent}
			old.setTask(&taskChange{Task: row, added: true, raw: []byte("{}")})
		}
		err = newTables(conn).write(old)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `INSERT INTO talks (task, message, thread, trace, tie, told, open, rounds) VALUES
			(1, 'm1', 'c', 'x1', '', 0, 0, 0), (2, 'm2', 'c', 'x1', 'assist', 0, 0, 0), (3, 'm3', 'c', '', '', 0, 0, 0)`)
	}
	if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
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
