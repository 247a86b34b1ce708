package ledger_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestOfTwoMoversOneWins(t *testing.T) {
	l := open(t)
	seq := add(t, l, newTask(1))[0]
	var (
		wins  atomic.Int32
		crowd sync.WaitGroup
	)
	for n := range 16 {
		crowd.Go(func() {
			var moved bool
			update(t, l, func(tx *ledger.Tx) (err error) {
				moved, err = tx.Move(seq, task.Queued, 0, task.Change{To: task.Running, Attempt: n + 1})
				return err
			})
			if moved {
				wins.Add(1)
			}
		})
	}
	crowd.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d of 16 moves from queued won; want 1", wins.Load())
	}
}

func TestAMoveFromAnotherAttemptLoses(t *testing.T) {
	l := open(t)
	row := newTask(1)
	row.State, row.Attempt = task.Running, 2
	seq := add(t, l, row)[0]
	update(t, l, func(tx *ledger.Tx) error {
		moved, err := tx.Move(seq, task.Running, 1, task.Change{To: task.Done, Result: []byte("late")})
		if moved || err != nil {
			t.Errorf("Move(from attempt 1 of 2) = %v, %v; want false, nil", moved, err)
		}
		return nil
	})
	if _, err := l.Result(context.Background(), seq); err == nil {
		t.Error("the result of a move that lost was kept")
	}
}

func TestDoneIsOver(t *testing.T) {
	l := open(t)
	seq := add(t, l, named("a", 1, task.Done))[0]
	update(t, l, func(tx *ledger.Tx) error {
		moved, err := tx.Move(seq, task.Done, 0, task.Change{To: task.Queued})
		if moved || err != nil {
			t.Errorf("Move(from done) = %v, %v; want false, nil", moved, err)
		}
		return nil
	})
}

func TestAResultIsKeptWithItsSumAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := open(t), context.Background()
		seq := add(t, l, newTask(1))[0]
		move(t, l, seq, task.Queued, 0, task.Change{To: task.Running, Attempt: 1, Agent: "other"})
		result := []byte("{\"status\":\"error\"}\n")
		move(t, l, seq, task.Running, 1, task.Change{To: task.Review, Status: envelope.Failed, Kind: envelope.AgentCrashed, Result: result})
		time.Sleep(time.Hour) // the bubble's clock, not ours
		move(t, l, seq, task.Review, 1, task.Change{To: task.Done})

		sum := sha256.Sum256(result)
		got, err := l.Task(ctx, seq)
		if err != nil || got.ResultSum != hex.EncodeToString(sum[:]) || !got.Finished.Equal(time.Now()) {
			t.Errorf("Task() = sum %s, finished %v, %v; want %x, %v", got.ResultSum, got.Finished, err, sum, time.Now())
		}
		if got.State != task.Done || got.Attempt != 1 || got.Agent != "other" || got.Status != envelope.Failed || got.Kind != envelope.AgentCrashed {
			t.Errorf("Task() = %+v; want what the moves before the last said", got)
		}
		if kept, err := l.Result(ctx, seq); err != nil || string(kept) != string(result) {
			t.Errorf("Result() = %q, %v; want %q", kept, err, result)
		}
	})
}

func TestAMoveReplacesTheReasonsOfAHold(t *testing.T) {
	l := open(t)
	row := newTask(1)
	row.State, row.Reasons, row.Until = task.Held, []task.Reason{task.Approval}, noon
	seq := add(t, l, row)[0]
	move(t, l, seq, task.Held, 0, task.Change{To: task.Queued})
	got, err := l.Task(context.Background(), seq)
	if err != nil || got.Reasons != nil || !got.Until.IsZero() {
		t.Errorf("Task() = reasons %v until %v, %v; want none", got.Reasons, got.Until, err)
	}
}

// Whatever is tried in whatever order, a task is in one state, that of the
// last move that won, and has an event for each of those.
func TestEveryMoveThatWonIsOneEvent(t *testing.T) {
	l, ctx := open(t), context.Background()
	dice := rand.New(rand.NewPCG(1, 2))
	seq := add(t, l, named("a", 1, task.Received))[0]
	state, attempt, won := task.Received, 0, 0
	for range 300 {
		from, to := task.States()[dice.IntN(7)], task.States()[dice.IntN(6)] // never to done, or it is soon over
		c := task.Change{To: to, Attempt: dice.IntN(3)}
		var moved bool
		update(t, l, func(tx *ledger.Tx) (err error) {
			moved, err = tx.Move(seq, from, attempt, c)
			if err != nil || !moved {
				return err
			}
			return tx.Log(task.Event{Time: noon, Kind: task.Kind("task." + string(to)), Task: "a", Revision: 1})
		})
		if moved != (from == state) {
			t.Fatalf("Move(from %s) of a task that is %s = %v", from, state, moved)
		}
		if moved {
			state, won = to, won+1
			attempt = cmp.Or(c.Attempt, attempt)
		}
	}
	got, err := l.Task(ctx, seq)
	if err != nil || got.State != state || got.Attempt != attempt {
		t.Errorf("Task() = %s, attempt %d, %v; want %s, %d", got.State, got.Attempt, err, state, attempt)
	}
	events, err := l.Events(ctx, "a", 0, 1000)
	if err != nil || len(events) != won {
		t.Errorf("%d events, %v; want %d, one for each move that won", len(events), err, won)
	}
}
