package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Rows of earlier transactions are kept. They have to be what a read of the tables returns.
func TestKeptRowsAreThoseOfTheTables(t *testing.T) {
	l, _ := openWith(t, "first")
	at := time.Date(2026, 3, 9, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	budget := envelope.Budget{Tokens: new(int64(100))}
	name := task.RunName{Attempt: 1}
	steps := []func(*Tx) error{
		func(tx *Tx) (err error) {
			name.Task, err = tx.Add(task.Task{ID: "a", Revision: 1, State: task.Queued, Until: at, Deadline: at, Received: at, Finished: at}, nil)
			return err
		},
		func(tx *Tx) error {
			terms := task.Terms{Tools: []string{}, Deadline: at, Accounts: []task.Account{{Owner: "agent:a", Day: "2026-03-09"}}}
			return errors.Join(move(tx, name.Task, task.Queued, 0, task.Change{To: task.Running, Attempt: 1}),
				tx.StartRun(task.Run{Task: name.Task, Attempt: 1, ID: "r", Intent: at, Boot: "b", Terms: terms, Reserved: budget}))
		},
		func(tx *Tx) error { return tx.SetProcess(name.Task, 1, 7, 8, "c") },
		func(tx *Tx) error { return tx.Lease(task.Task{Seq: name.Task, Attempt: 1}, "token", at) },
		func(tx *Tx) error {
			return errors.Join(tx.FinishRun(task.Run{Task: name.Task, Attempt: 1, Started: at, Finished: at, ExitCode: 3, Tokens: new(int64(5))}),
				move(tx, name.Task, task.Running, 1, task.Change{To: task.Done, Status: envelope.OK, Result: []byte("{}")}))
		},
		func(tx *Tx) error { return tx.MarkPut(name.Task, true) },
		func(tx *Tx) error {
			_, err := tx.Add(task.Task{ID: "a", Revision: 2, State: task.Queued}, nil)
			return err
		},
	}
	for n, step := range steps {
		if err := l.Update(t.Context(), step); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		for range 2 { // the first may read the tables
			wantKept(t, l, name)
		}
	}
}

func TestRowsOfATransactionThatFailedAreNotKept(t *testing.T) {
	l, _ := openWith(t, "a")
	failed := errors.New("it fails")
	start := func(tx *Tx) error {
		return errors.Join(move(tx, 1, task.Queued, 0, task.Change{To: task.Running, Attempt: 1}), tx.StartRun(task.Run{Task: 1, Attempt: 1}))
	}
	for range 2 { // without rows of an earlier transaction, and with them
		if err := l.Update(t.Context(), func(tx *Tx) error { return errors.Join(start(tx), failed) }); !errors.Is(err, failed) {
			t.Fatalf("Update() = %v; want %v", err, failed)
		}
		wantKept(t, l, task.RunName{Task: 1, Attempt: 1})
	}
	failToCommit(t, l)
	if err := l.Update(t.Context(), start); err != nil {
		t.Errorf("Update(after a commit that failed) = %v", err)
	}
	wantKept(t, l, task.RunName{Task: 1, Attempt: 1})
}

func move(tx *Tx, seq int64, from task.State, attempt int, c task.Change) error {
	moved, err := tx.Move(seq, from, attempt, c)
	if err == nil && !moved {
		err = errors.New("it was not moved")
	}
	return err
}

// wantKept compares a task and its run in a transaction with what a reader returns.
func wantKept(t *testing.T, l *Ledger, name task.RunName) {
	t.Helper()
	var row task.Task
	var runs []task.Run
	err := l.Update(t.Context(), func(tx *Tx) (err error) {
		runs = nil
		run, found, err := tx.Run(name)
		if found {
			runs = append(runs, run)
		}
		if err == nil {
			row, _, err = tx.Task(name.Task)
		}
		return errors.Join(err, tx.SetFile(File{Path: "a"})) // the transaction is committed
	})
	if err != nil {
		t.Fatal(err)
	}
	wantRow, err := l.Task(t.Context(), name.Task)
	wantRuns, err2 := l.Runs(t.Context(), name.Task)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantRow, row); diff != "" {
		t.Errorf("the task of a transaction differs from that of a reader (-reader +transaction):\n%s", diff)
	}
	if diff := cmp.Diff(wantRuns, runs); diff != "" {
		t.Errorf("the runs of a transaction differ from those of a reader (-reader +transaction):\n%s", diff)
	}
}
