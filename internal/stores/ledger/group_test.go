package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// stall starts an Update that ends when the returned function is called, and
// waits until it is under way, so that those who come now form one group.
func stall(t *testing.T, l *ledger.Ledger, crowd *sync.WaitGroup) (release func()) {
	t.Helper()
	under, gate := make(chan struct{}), make(chan struct{})
	crowd.Go(func() {
		update(t, l, func(*ledger.Tx) error {
			close(under)
			<-gate
			return nil
		})
	})
	<-under
	return func() { close(gate) }
}

func TestWhoComesDuringACommitSharesTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		var (
			crowd  sync.WaitGroup
			groups = map[*ledger.Tx]int{} // only the writer runs functions
		)
		release := stall(t, l, &crowd)
		for n := range 50 {
			crowd.Go(func() {
				update(t, l, func(tx *ledger.Tx) error {
					groups[tx]++
					_, err := tx.Add(newTask(n), nil)
					return err
				})
			})
		}
		synctest.Wait()
		release()
		crowd.Wait()
		tasks, err := l.Tasks(context.Background(), ledger.Filter{})
		if err != nil || len(tasks) != 50 {
			t.Errorf("%d tasks, %v; want 50", len(tasks), err)
		}
		if len(groups) != 1 {
			t.Errorf("50 updates were committed in %d groups; want 1", len(groups))
		}
	})
}

func TestWhatIsWantedSoonRidesWithTheNextUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		var (
			crowd sync.WaitGroup
			rides *ledger.Tx
		)
		crowd.Go(func() {
			if err := l.UpdateSoon(t.Context(), func(tx *ledger.Tx) error { rides = tx; return nil }); err != nil {
				t.Errorf("UpdateSoon() = %v", err)
			}
		})
		synctest.Wait()
		if rides != nil {
			t.Error("UpdateSoon made a transaction of its own at once")
		}
		update(t, l, func(tx *ledger.Tx) error {
			if tx != rides {
				t.Error("what is wanted soon did not ride with an update")
			}
			return nil
		})
		crowd.Wait()
	})
}

func TestWhatIsWantedSoonIsDoneWithoutAnybodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		err := l.UpdateSoon(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Add(newTask(1), nil)
			return err
		})
		tasks, _ := l.Tasks(context.Background(), ledger.Filter{})
		if err != nil || len(tasks) != 1 {
			t.Errorf("UpdateSoon() = %v, and %d tasks are there; want nil and 1", err, len(tasks))
		}
	})
}

func TestAFailingFunctionDoesNotSpoilItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		bad := errors.New("bad")
		var crowd sync.WaitGroup
		release := stall(t, l, &crowd)
		for n := range 9 {
			crowd.Go(func() {
				err := l.Update(context.Background(), func(tx *ledger.Tx) error {
					if _, err := tx.Add(newTask(n), nil); err != nil {
						return err
					}
					if n%3 == 0 {
						return bad
					}
					return nil
				})
				if n%3 == 0 && err != bad || n%3 != 0 && err != nil {
					t.Errorf("Update() of function %d = %v; want its own error only", n, err)
				}
			})
			synctest.Wait() // they queue in this order
		}
		release()
		crowd.Wait()
		tasks, err := l.Tasks(context.Background(), ledger.Filter{})
		if err != nil || len(tasks) != 6 {
			t.Errorf("%d tasks, %v; want the 6 of the functions that did not fail", len(tasks), err)
		}
	})
}

func TestAnSQLErrorDoesNotSpoilItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		add(t, l, newTask(0))
		var crowd sync.WaitGroup
		release := stall(t, l, &crowd)
		for n := range 3 {
			crowd.Go(func() {
				err := l.Update(context.Background(), func(tx *ledger.Tx) error {
					_, err := tx.Add(newTask(n), nil) // the first is there already
					return err
				})
				if (err != nil) != (n == 0) {
					t.Errorf("Update() of function %d = %v; want an error of the first only", n, err)
				}
			})
		}
		synctest.Wait()
		release()
		crowd.Wait()
		if tasks, err := l.Tasks(context.Background(), ledger.Filter{}); err != nil || len(tasks) != 3 {
			t.Errorf("%d tasks, %v; want 3", len(tasks), err)
		}
	})
}

func TestACallerWhoseContextEndsInTheQueueLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		var crowd sync.WaitGroup
		release := stall(t, l, &crowd)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		crowd.Go(func() {
			left <- l.Update(ctx, func(*ledger.Tx) error {
				t.Error("the function of a caller who left was run")
				return nil
			})
		})
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Update() = %v; want context.Canceled while others still commit", err)
		}
		release()
		crowd.Wait()
	})
}

func TestAContextThatEndsInsideAGroupDoesNotMatter(t *testing.T) {
	l := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := l.Update(ctx, func(tx *ledger.Tx) error {
		cancel()
		_, err := tx.Add(newTask(1), nil)
		return err
	})
	tasks, listed := l.Tasks(context.Background(), ledger.Filter{})
	if err != nil || listed != nil || len(tasks) != 1 {
		t.Errorf("Update() = %v with %d tasks kept, %v; want nil and 1", err, len(tasks), listed)
	}
	if err := l.Update(ctx, func(*ledger.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Update(ended context) = %v; want context.Canceled", err)
	}
}

func TestUpdatesOfACrowdAreAllKept(t *testing.T) {
	l := open(t)
	var crowd sync.WaitGroup
	for w := range 8 {
		crowd.Go(func() {
			for n := range 50 {
				update(t, l, func(tx *ledger.Tx) error { return accept(tx, newTask(w*50+n), nil) })
			}
		})
	}
	crowd.Wait()
	tasks, err := l.Tasks(context.Background(), ledger.Filter{})
	if err != nil || len(tasks) != 400 {
		t.Errorf("%d tasks, %v; want 400", len(tasks), err)
	}
	seen := map[string]bool{}
	for at, row := range tasks {
		seen[fmt.Sprint(row.ID)] = true
		if row.Seq != int64(at)+1 {
			t.Fatalf("task %d has seq %d; want no gap", at, row.Seq)
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d different tasks; want 400", len(seen))
	}
}

func TestARowThatCannotBeWrittenIsHeldAgainstWhoAddedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t)
		first := add(t, l, newTask(0), newTask(1), newTask(2))[0]
		begin := func(tx *ledger.Tx, seq int64) error {
			return tx.StartRun(task.Run{Task: seq, Attempt: 1, Intent: noon})
		}
		update(t, l, func(tx *ledger.Tx) error { return begin(tx, first) })
		var crowd sync.WaitGroup
		release := stall(t, l, &crowd)
		for n := range 3 {
			crowd.Go(func() {
				err := l.Update(context.Background(), func(tx *ledger.Tx) error {
					if _, _, err := tx.Run(task.RunName{Task: first, Attempt: 1}); err != nil {
						return err // of what those before added, were it held against this one
					}
					return begin(tx, first+int64(n)) // the first was begun before
				})
				if (err != nil) != (n == 0) {
					t.Errorf("Update() of function %d = %v; want an error of the first only", n, err)
				}
			})
			synctest.Wait() // they queue in this order
		}
		release()
		crowd.Wait()
		for n := range 3 {
			if runs, err := l.Runs(context.Background(), first+int64(n)); err != nil || len(runs) != 1 {
				t.Errorf("task %d has %d runs, %v; want 1", n, len(runs), err)
			}
		}
	})
}
