package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func TestTasksInEveryStateButDoneAreOpen(t *testing.T) {
	l, _ := openWith(t, "a")
	for _, state := range task.States() {
		if err := addTask(l, "ann", state); err != nil {
			t.Fatal(err)
		}
	}
	wantOpen(t, l, "ann", len(task.States())-1)
	wantOpen(t, l, "", 1) // the one of openWith
	wantOpen(t, l, "bob", 0)
}

func TestTheOpenTasksOfARequesterAreCountedAsTheyCome(t *testing.T) {
	l, _ := openWith(t, "a")
	wantOpen(t, l, "ann", 0)
	for n := range 5 {
		if err := addTask(l, "ann", task.Queued); err != nil {
			t.Fatal(err)
		}
		err := l.Update(t.Context(), func(tx *Tx) error {
			open, err := tx.OpenOf("ann")
			if open != n+1 {
				t.Errorf("OpenOf() = %d; want %d", open, n+1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenTasksAreCountedWithThoseOfTheSameTransaction(t *testing.T) {
	l, _ := openWith(t, "a")
	for _, counted := range []bool{false, true} {
		err := l.Update(t.Context(), func(tx *Tx) error {
			if err := addIn(tx, "ann", task.Held); err != nil {
				return err
			}
			if open, err := tx.OpenOf("ann"); open != 1 || err != nil {
				t.Errorf("OpenOf(ann) = %d, %v; want 1, counted before: %t", open, err, counted)
			}
			return errors.New("not kept")
		})
		if err == nil {
			t.Fatal("Update() = nil; want the error of its function")
		}
	}
	wantOpen(t, l, "ann", 0)
}

// A COMMIT that failed may be on the disk all the same.
func TestOpenTasksAreCountedAgainAfterACommitThatFailed(t *testing.T) {
	l, _ := openWith(t, "a")
	wantOpen(t, l, "", 1)
	failToCommit(t, l)
	wantOpen(t, l, "", 1)
	if err := addNamed(l, "b"); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, l, "", 2)
}

// Transactions that fail, run again, share a group, and end in a kill: the count is that
// of the tables.
func TestOpenTasksAreCountedRightWhateverHappens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "ledger.db")
	for range 8 {
		l, _, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, l)
		for range 10 {
			changeAtRandom(r, l)
			wantCounts(t, l)
		}
		path = copyLedger(t, path) // as a kill leaves it
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// changeAtRandom has several goroutines add and end tasks. Some take that back.
func changeAtRandom(r *rand.Rand, l *Ledger) {
	var crowd sync.WaitGroup
	for range 6 {
		who, fails, ends := fmt.Sprint("r", r.IntN(3)), r.IntN(3) == 0, r.IntN(2) == 0
		state, moves := []task.State{task.Queued, task.Held, task.Done}[r.IntN(3)], r.IntN(2) == 0
		crowd.Go(func() {
			_ = l.Update(background, func(tx *Tx) error {
				err := addIn(tx, who, state)
				if moves && err == nil {
					err = moveOne(tx, who, task.Running)
				}
				if ends && err == nil {
					err = moveOne(tx, who, task.Done)
				}
				if fails && err == nil {
					err = errors.New("not kept")
				}
				return err
			})
		})
	}
	crowd.Wait()
}

// moveOne moves the oldest open task of a requester.
func moveOne(tx *Tx, requester string, to task.State) error {
	row, found, err := first(background, tx.write, scanTask,
		"SELECT "+taskColumns+" FROM tasks WHERE state <> 'done' AND requester = ? ORDER BY seq LIMIT 1", requester)
	if err != nil || !found {
		return err
	}
	_, err = tx.Move(row.Seq, row.State, row.Attempt, task.Change{To: to, Status: envelope.OK})
	return err
}

func addTask(l *Ledger, requester string, state task.State) error {
	return l.Update(background, func(tx *Tx) error { return addIn(tx, requester, state) })
}

func addIn(tx *Tx, requester string, state task.State) error {
	id := envelope.ID(fmt.Sprint(requester, "-", rand.Int64()))
	_, err := tx.Add(task.Task{ID: id, Revision: 1, State: state, Requester: requester}, nil)
	return err
}

func wantOpen(t *testing.T, l *Ledger, requester string, want int) {
	t.Helper()
	err := l.Update(t.Context(), func(tx *Tx) error {
		if open, err := tx.OpenOf(requester); open != want || err != nil {
			t.Errorf("OpenOf(%q) = %d, %v; want %d", requester, open, err, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantCounts compares what is counted with what the tables have.
func wantCounts(t *testing.T, l *Ledger) {
	t.Helper()
	rows, err := l.Tasks(context.Background(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want, states := map[string]int{"r0": 0, "r1": 0, "r2": 0}, map[task.State]int{}
	for _, row := range rows {
		if row.State != task.Done {
			want[row.Requester]++
			states[row.State]++
		}
	}
	if open, err := l.CountOpen(t.Context()); err != nil || !maps.Equal(open, states) {
		t.Errorf("CountOpen() = %v, %v; want %v", open, err, states)
	}
	for requester, n := range want {
		wantOpen(t, l, requester, n)
	}
}
