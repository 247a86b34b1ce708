package schedule

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// oneSlot is a queue with a single slot and three tasks of an agent.
func oneSlot() *Queue {
	q := NewQueue(1, 10, 0, limitOf(1))
	for seq := range int64(3) {
		q.Push(an(seq+1, "a", "x"))
	}
	return q
}

func TestARequesterNeverHasMoreRunsThanItsLimit(t *testing.T) {
	q := NewQueue(9, 10, 2, limitOf(9))
	for seq := range int64(4) {
		q.Push(an(seq+1, "a", "x"))
	}
	first, _ := q.Take(t.Context())
	q.Take(t.Context())
	q.Release(first)
	if third, _ := q.Take(t.Context()); third.Seq != 3 {
		t.Errorf("took %d in the place of the first; want 3", third.Seq)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, ok := q.next(); ok {
		t.Errorf("took %d while two runs of x are there; want none", it.Seq)
	}
}

// A task that starts at once must not pass those that came before it.
func TestNoTaskStartsAtOnceWhileOthersWait(t *testing.T) {
	start := func(q *Queue) bool { return q.Reserve(an(9, "b", "y")) }
	q := NewQueue(2, 10, 0, limitOf(1))
	if !start(q) {
		t.Error("Reserve = false of an empty queue; want true")
	}
	q.Release(an(9, "b", "y"))
	q.CancelReservation()
	q.Push(an(1, "a", "x"))
	if start(q) {
		t.Error("Reserve = true while a task waits; want false")
	}
	q.Take(t.Context())
	q.Push(an(2, "a", "x"))
	if start(q) {
		t.Error("Reserve = true while a task waits for its agent; want false")
	}
}

func TestNoTaskStartsAtOnceBeyondALimit(t *testing.T) {
	for name, c := range map[string]struct{ slots, perAgent, perRequester int }{
		"of slots": {1, 9, 9}, "of the agent": {9, 1, 9}, "of the requester": {9, 9, 1},
	} {
		q := NewQueue(c.slots, 10, c.perRequester, limitOf(c.perAgent))
		if !q.Reserve(an(1, "a", "x")) || q.Reserve(an(2, "a", "x")) {
			t.Errorf("%s: the second of two tasks starts, or the first doesn't", name)
		}
	}
}

func TestNoTaskBeginsAfterTheEnd(t *testing.T) {
	q := NewQueue(9, 10, 0, limitOf(9))
	q.Push(an(1, "a", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if it, ok := q.Take(ctx); ok {
		t.Errorf("Take = %d after the end; want none", it.Seq)
	}
}

func TestNoTaskIsLostFromALongQueueOfManyRequesters(t *testing.T) {
	const many = 4 * fewItems
	q := NewQueue(many, many, 0, limitOf(many))
	for seq := range int64(many) {
		q.Push(an(seq+1, "a", string(rune('a'+seq))))
	}
	for want := range int64(many) {
		q.mu.Lock()
		it, _ := q.next()
		q.mu.Unlock()
		if it.Seq != want+1 {
			t.Fatalf("took %d; want %d", it.Seq, want+1)
		}
	}
}

func TestTheLoadOfAnAgentIsAllThatItHasToDo(t *testing.T) {
	q := oneSlot()
	q.Take(t.Context())
	if a, b := q.Load("a"), q.Load("b"); a != 3 || b != 0 {
		t.Errorf("the loads of a and b are %d and %d; want 3 and 0", a, b)
	}
}

func TestTasksThatAreTakenBackAreBusyUntilTheyAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(9, 10, 0, limitOf(9))
		q.Push(an(1, "a", "x"))
		q.AddBusy() // a task in a pause
		if back := q.TakeBack("a", 9); len(back) != 1 {
			t.Fatalf("TakeBack = %v; want the task", back)
		}
		idle := false
		waiting := startAll(func() { idle = q.WaitIdle(t.Context()) == nil })
		for range 2 {
			if synctest.Wait(); idle {
				t.Error("the queue is idle before both are done")
			}
			q.Done()
		}
		if waiting.Wait(); !idle {
			t.Error("the queue isn't idle after both are done")
		}
	})
}

func TestAnAgentIsReleasedWhenItHasNoRun(t *testing.T) {
	for _, agent := range []string{"a", AllAgents} {
		synctest.Test(t, func(t *testing.T) {
			q := oneSlot()
			running, _ := q.Take(t.Context())
			released := false
			waiting := startAll(func() { released = q.WaitReleased(t.Context(), agent) == nil })
			if synctest.Wait(); released {
				t.Errorf("%q is released before task %d", agent, running.Seq)
			}
			q.Release(running)
			if waiting.Wait(); !released {
				t.Errorf("%q isn't released", agent)
			}
		})
	}
}

func TestTheWaitForTheReleaseOfAnAgentEndsWithItsContext(t *testing.T) {
	q := oneSlot()
	q.Take(t.Context())
	if err := q.WaitReleased(t.Context(), "b"); err != nil {
		t.Errorf("WaitReleased(b) = %v while a runs; want nil", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	if err := q.WaitReleased(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("WaitReleased = %v; want %v", err, why)
	}
}
