package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// BenchmarkAccept is the ledger's share of taking a line: looking the id up,
// adding the task and its event, and moving the file's offset once a batch.
func BenchmarkAccept(b *testing.B) {
	for _, batch := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			l := open(b)
			raw := make([]byte, 1000)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				update(b, l, func(tx *ledger.Tx) error {
					for i := range batch {
						if err := accept(tx, newTask(n*batch+i), raw); err != nil {
							return err
						}
					}
					tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(n)})
					return nil
				})
				n++
			}
			b.ReportMetric(float64(n*batch)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func accept(tx *ledger.Tx, t task.Task, raw []byte) error {
	if _, known, err := tx.Latest(t.ID); known || err != nil {
		return fmt.Errorf("task %s is known, or %w", t.ID, err)
	}
	seq, err := tx.Add(t, raw)
	if err != nil {
		return err
	}
	return tx.Log(task.Event{Time: t.Received, Kind: "task.accepted", Task: t.ID, Revision: 1, Of: seq, Data: []byte(`{"file":"tasks/a.jsonl"}`)})
}

// BenchmarkMove takes tasks from queued to settled as the workers do, each
// with the commits of its own that it then shares with the others.
func BenchmarkMove(b *testing.B) {
	for _, workers := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			l := open(b)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				var done sync.WaitGroup
				for w := range workers {
					done.Go(func() { work(b, l, newTask(n+w)) })
				}
				done.Wait()
				n += workers
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// work makes the commits of a task's life: accepted, started, ended, settled.
func work(tb testing.TB, l *ledger.Ledger, t task.Task) {
	var seq int64
	update(tb, l, func(tx *ledger.Tx) (err error) {
		seq, err = tx.Add(t, []byte("{}"))
		return errors.Join(err, tx.Log(task.Event{Time: noon, Kind: "task.accepted", Task: t.ID, Revision: 1, Of: seq}))
	})
	update(tb, l, func(tx *ledger.Tx) error {
		_, err := tx.Move(seq, task.Queued, 0, task.Change{To: task.Running, Attempt: 1})
		return errors.Join(err, tx.Log(task.Event{Time: noon, Kind: "task.started", Task: t.ID, Revision: 1, Of: seq}))
	})
	update(tb, l, func(tx *ledger.Tx) error {
		_, err := tx.Move(seq, task.Running, 1, task.Change{To: task.Done, Status: envelope.OK, Result: []byte(`{"status":"ok"}`)})
		return errors.Join(err, tx.Log(task.Event{Time: noon, Kind: "task.finished", Task: t.ID, Revision: 1, Of: seq}))
	})
	update(tb, l, func(tx *ledger.Tx) error { return tx.MarkPut(seq, true) })
}

// BenchmarkStartBehindAMillionDoneTasks is what a restart costs before the
// first look: it must not depend on what is done.
func BenchmarkStartBehindAMillionDoneTasks(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	fill(b, path, 1_000_000)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		l, _, err := ledger.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		_, unsettled := l.Unsettled(ctx, 0, 1000)
		_, unfinished := l.Unfinished(ctx, 0, 1000)
		_, files := l.Files(ctx)
		if unsettled != nil || unfinished != nil || files != nil {
			b.Fatal(unsettled, unfinished, files)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes a ledger with n done tasks in it, past the daemon's own way in.
func fill(tb testing.TB, path string, n int) {
	tb.Helper()
	l, _, err := ledger.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)")
	if err != nil {
		tb.Fatal(err)
	}
	_, err = db.Exec(`INSERT INTO tasks (id, revision, latest, state, attempt, reasons, status, kind, put, delivered, replaces, agent,
		requester, type, dialect, hash, result_sum, received, finished, file, offset)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		SELECT 'task-' || i, 1, 1, 'done', 1, '', 'ok', '', 1, 1, 0, 'a', 'r', 't', 'ainl', hex(randomblob(32)), hex(randomblob(32)), ?, ?, 'tasks/a.jsonl', i FROM n`,
		n, noon.UnixMicro(), noon.Add(time.Second).UnixMicro())
	if err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}
