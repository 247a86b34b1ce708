package dispatch

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oneSlot is a queue with a single slot and three tasks of an agent whose runs
// take so long.
func oneSlot(pace time.Duration) *queue {
	q := newQueue(1, 10, 0, limitOf(1))
	q.ran("a", pace)
	for seq := range int64(3) {
		q.push(an(seq+1, "a", "x"))
	}
	return q
}

// wantBehind has an item begin in the slot of another one, once that is free and not
// before. It is for a test in a bubble.
func wantBehind(t *testing.T, q *queue, first, second item) {
	t.Helper()
	began := false
	waiting := startAll(func() { began = q.start(t.Context(), t.Context(), second) })
	synctest.Wait()
	if began {
		t.Error("the second began while the first had the slot")
	}
	q.free(first)
	waiting.Wait()
	if !began {
		t.Error("start = false once the slot was free; want true")
	}
}

func TestATaskOfAQuickAgentGetsReadyBeforeThereIsASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := oneSlot(time.Millisecond)
		first, _ := q.take(t.Context())
		second, _ := q.take(t.Context())
		if !q.start(t.Context(), t.Context(), first) {
			t.Error("start = false for the one that has the slot; want true")
		}
		wantBehind(t, q, first, second)
		third, _ := q.take(t.Context())
		q.free(second)
		if !q.start(t.Context(), t.Context(), third) || third.seq != 3 {
			t.Errorf("task %d did not get the slot of the second; want 3", third.seq)
		}
	})
}

func TestAllWhoMayGetReadyAreWokenByTheEndOfOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 99, 0, limitOf(1)) // nobody knows yet that the agent is quick
		for seq := range int64(9) {
			q.push(an(seq+1, "a", "x"))
		}
		first, _ := q.take(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var took atomic.Int64
		taker := func() {
			if _, ok := q.take(ctx); ok {
				took.Add(1)
			}
		}
		running := startAll(slices.Repeat([]func(){taker}, 9)...)
		synctest.Wait()
		q.ran("a", time.Millisecond)
		q.free(first)
		synctest.Wait()
		if got := took.Load(); got != 1+perSlot {
			t.Errorf("%d were taken; want one for the slot and %d ahead of it", got, perSlot)
		}
		cancel()
		running.Wait()
	})
}

func TestNoTaskOfASlowAgentGetsReadyEarly(t *testing.T) {
	q := oneSlot(time.Second)
	q.take(t.Context())
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, ok := q.next(); ok {
		t.Errorf("took %d, which has no slot; want none", it.seq)
	}
}

func TestWhoseTurnDoesNotComeGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := oneSlot(time.Millisecond)
		first, _ := q.take(t.Context())
		second, _ := q.take(t.Context())
		if q.start(t.Context(), t.Context(), second) {
			t.Error("start = true while another has the slot; want false")
		}
		q.free(second)
		q.free(first)
		if third, _ := q.take(t.Context()); third.seq != 3 || !q.start(t.Context(), t.Context(), third) {
			t.Errorf("took %d; want 3, which has the slot", third.seq)
		}
	})
}

func TestNobodyWaitsForASlotWhoIsTurnedBackOrStopped(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, back := range map[string]func(*queue) context.Context{
		"turned back": func(q *queue) context.Context { q.turnBack("a"); return t.Context() },
		"everybody":   func(q *queue) context.Context { q.turnBack(Everyone); return t.Context() },
		"stopped":     func(*queue) context.Context { return stopped },
	} {
		q := oneSlot(time.Millisecond)
		q.take(t.Context())
		second, _ := q.take(t.Context())
		if q.start(back(q), t.Context(), second) {
			t.Errorf("%s: start = true; want false", name)
		}
		q.free(second)
		if q.taken != 1 || q.early.of(Everyone) != 0 {
			t.Errorf("%s: %d slots are taken and %d wait; want 1 and 0", name, q.taken, q.early.of(Everyone))
		}
	}
}

// A task that was held and let go of is in line twice: what was taken in vain has
// the slot of nobody else.
func TestATaskThatWasTakenTwiceBeginsInASlotOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 10, 0, limitOf(1))
		q.ran("a", time.Millisecond)
		for _, seq := range []int64{1, 2, 2} {
			q.push(an(seq, "a", "x"))
		}
		first, _ := q.take(t.Context())
		second, _ := q.take(t.Context())
		again, _ := q.take(t.Context())
		q.free(again) // somebody else begins with its task
		wantBehind(t, q, first, second)
		q.free(second)
		if q.taken != 0 || q.early.of(Everyone) != 0 {
			t.Errorf("%d slots are taken and %d wait; want none", q.taken, q.early.of(Everyone))
		}
	})
}
