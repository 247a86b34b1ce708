package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 123456000, time.UTC)

// open opens a new ledger and closes it at the end of the test.
func open(tb testing.TB) *ledger.Ledger {
	tb.Helper()
	return openAt(tb, filepath.Join(tb.TempDir(), "ledger.db"))
}

func openAt(tb testing.TB, path string) *ledger.Ledger {
	tb.Helper()
	l, opened, err := ledger.Open(path)
	if err != nil || opened.Aside != "" {
		tb.Fatalf("Open(%s) = %+v, %v; want a readable ledger", path, opened, err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("Close() = %v; want nil", err)
		}
	})
	return l
}

func update(tb testing.TB, l *ledger.Ledger, fn func(*ledger.Tx) error) {
	tb.Helper()
	if err := l.Update(context.Background(), fn); err != nil {
		tb.Errorf("Update() = %v; want nil", err)
	}
}

// add adds tasks and returns their seqs.
func add(tb testing.TB, l *ledger.Ledger, tasks ...task.Task) (seqs []int64) {
	tb.Helper()
	update(tb, l, func(tx *ledger.Tx) error {
		seqs = nil
		for _, t := range tasks {
			seq, err := tx.Add(t, []byte(t.ID))
			if err != nil {
				return err
			}
			seqs = append(seqs, seq)
		}
		return nil
	})
	return seqs
}

// move moves a task and fails the test when another move came first.
func move(tb testing.TB, l *ledger.Ledger, seq int64, from task.State, attempt int, c task.Change) {
	tb.Helper()
	update(tb, l, func(tx *ledger.Tx) error {
		moved, err := tx.Move(seq, from, attempt, c)
		if err == nil && !moved {
			err = fmt.Errorf("task %d was not %s, attempt %d", seq, from, attempt)
		}
		return err
	})
}

// newTask is a queued task; the ids of different n are in no particular order,
// as those of senders are not.
func newTask(n int) task.Task {
	return task.Task{
		ID: envelope.ID(fmt.Sprintf("task-%08x", uint32(n)*2654435761)), Revision: 1,
		Hash: fmt.Sprintf("%064x", n), Dialect: "ainl", State: task.Queued,
		Agent: "openclaw.monitor", Requester: "sre@example.com", Type: "execute_monitor",
		Received: noon, File: "tasks/a.jsonl", Offset: int64(n),
	}
}

func named(id envelope.ID, revision int, state task.State) task.Task {
	t := newTask(revision)
	t.ID, t.Revision, t.State = id, revision, state
	return t
}

// ids shortens tasks to what tests compare.
func ids(tasks []task.Task) (list []string) {
	for _, t := range tasks {
		list = append(list, fmt.Sprintf("%s.%d", t.ID, t.Revision))
	}
	return list
}
