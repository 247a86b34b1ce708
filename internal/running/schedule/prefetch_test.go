package schedule

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
func oneSlot(pace time.Duration) *Queue {
	q := NewQueue(1, 10, 0, limitOf(1))
	q.RecordRun("a", pace)
	for seq := range int64(3) {
		q.Push(an(seq+1, "a", "x"))
	}
	return q
}

// wantBehind has an item begin in the slot of another one, once that is free and not
// before. It is for a test in a bubble.
func wantBehind(t *testing.T, q *Queue, first, second Item) {
	t.Helper()
	began := false
	waiting := startAll(func() { began = q.WaitForSlot(t.Context(), t.Context(), second) })
	synctest.Wait()
	if began {
		t.Error("the second began while the first had the slot")
	}
	q.Release(first)
	waiting.Wait()
	if !began {
		t.Error("start = false once the slot was free; want true")
	}
}

func TestATaskOfAQuickAgentGetsReadyBeforeThereIsASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := oneSlot(time.Millisecond)
		first, _ := q.Take(t.Context())
		second, _ := q.Take(t.Context())
		if !q.WaitForSlot(t.Context(), t.Context(), first) {
			t.Error("start = false for the one that has the slot; want true")
		}
		wantBehind(t, q, first, second)
		third, _ := q.Take(t.Context())
		q.Release(second)
		if !q.WaitForSlot(t.Context(), t.Context(), third) || third.Seq != 3 {
			t.Errorf("task %d did not get the slot of the second; want 3", third.Seq)
		}
	})
}

func TestAllWhoMayGetReadyAreWokenByTheEndOfOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 99, 0, limitOf(1)) // nobody knows yet that the agent is quick
		for seq := range int64(9) {
			q.Push(an(seq+1, "a", "x"))
		}
		first, _ := q.Take(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var took atomic.Int64
		taker := func() {
			if _, ok := q.Take(ctx); ok {
				took.Add(1)
			}
		}
		running := startAll(slices.Repeat([]func(){taker}, 9)...)
		synctest.Wait()
		q.RecordRun("a", time.Millisecond)
		q.Release(first)
		synctest.Wait()
		if got := took.Load(); got != 1+PrefetchPerSlot {
			t.Errorf("%d were taken; want one for the slot and %d ahead of it", got, PrefetchPerSlot)
		}
		cancel()
		running.Wait()
	})
}

func TestNoTaskOfASlowAgentGetsReadyEarly(t *testing.T) {
	q := oneSlot(time.Second)
	q.Take(t.Context())
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, ok := q.next(); ok {
		t.Errorf("took %d, which has no slot; want none", it.Seq)
	}
}

func TestWhoseTurnDoesNotComeGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := oneSlot(time.Millisecond)
		first, _ := q.Take(t.Context())
		second, _ := q.Take(t.Context())
		if q.WaitForSlot(t.Context(), t.Context(), second) {
			t.Error("start = true while another has the slot; want false")
		}
		q.Release(second)
		q.Release(first)
		if third, _ := q.Take(t.Context()); third.Seq != 3 || !q.WaitForSlot(t.Context(), t.Context(), third) {
			t.Errorf("took %d; want 3, which has the slot", third.Seq)
		}
	})
}

func TestNobodyWaitsForASlotWhoIsTurnedBackOrStopped(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, back := range map[string]func(*Queue) context.Context{
		"turned back": func(q *Queue) context.Context { q.CancelPrefetch("a"); return t.Context() },
		"everybody":   func(q *Queue) context.Context { q.CancelPrefetch(AllAgents); return t.Context() },
		"stopped":     func(*Queue) context.Context { return stopped },
	} {
		q := oneSlot(time.Millisecond)
		q.Take(t.Context())
		second, _ := q.Take(t.Context())
		if q.WaitForSlot(back(q), t.Context(), second) {
			t.Errorf("%s: start = true; want false", name)
		}
		q.Release(second)
		if q.taken != 1 || q.prefetch.count(AllAgents) != 0 {
			t.Errorf("%s: %d slots are taken and %d wait; want 1 and 0", name, q.taken, q.prefetch.count(AllAgents))
		}
	}
}

// A task that was held and released is in the queue twice: its unused entry takes no slot of
// another task.
func TestATaskThatWasTakenTwiceBeginsInASlotOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 10, 0, limitOf(1))
		q.RecordRun("a", time.Millisecond)
		for _, seq := range []int64{1, 2, 2} {
			q.Push(an(seq, "a", "x"))
		}
		first, _ := q.Take(t.Context())
		second, _ := q.Take(t.Context())
		again, _ := q.Take(t.Context())
		q.Release(again) // somebody else begins with its task
		wantBehind(t, q, first, second)
		q.Release(second)
		if q.taken != 0 || q.prefetch.count(AllAgents) != 0 {
			t.Errorf("%d slots are taken and %d wait; want none", q.taken, q.prefetch.count(AllAgents))
		}
	})
}

// What is prepared already may start before it.
func TestQuickTasksOfAnotherAgentDoNotPassAHigherPriority(t *testing.T) {
	q := NewQueue(1, 1000, 0, limitOf(10))
	q.RecordRun("quick", time.Millisecond)
	for seq := range int64(200) {
		q.Push(Item{Seq: seq + 1, Agent: "quick", Requester: "bulk", Priority: -5})
	}
	var open []Item
	take := func() (urgent bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		for {
			it, ok := q.next()
			if !ok {
				return slices.ContainsFunc(open, func(it Item) bool { return it.Agent == "slow" })
			}
			open = append(open, it)
		}
	}
	take() // one has the slot, the others are prepared
	q.Push(Item{Seq: 1000, Agent: "slow", Requester: "ann", Priority: 9})
	ran := 0
	for ; !take(); ran++ {
		if ran > 1+PrefetchPerSlot {
			t.Fatalf("%d quick tasks ran first; want at most %d", ran, 1+PrefetchPerSlot)
		}
		q.Release(open[0]) // the one with the slot ends
		q.Done()
		open = open[1:]
	}
}

// The agent of the task with the higher priority is free when the run ends that has the slot.
func TestATaskIsNotPreparedBeforeOneWithAHigherPriorityWhoseAgentIsBusy(t *testing.T) {
	q := NewQueue(1, 10, 0, limitOf(1))
	q.RecordRun("quick", time.Millisecond)
	q.Push(Item{Seq: 1, Agent: "busy"})
	running, _ := q.Take(t.Context())
	q.Push(Item{Seq: 2, Agent: "quick", Priority: -2})
	q.Push(Item{Seq: 3, Agent: "busy"})
	q.mu.Lock()
	if it, ok := q.next(); ok {
		q.mu.Unlock()
		t.Fatalf("next() = task %d; want none before the slot is free", it.Seq)
	}
	q.mu.Unlock()
	q.Release(running)
	if it, _ := q.Take(t.Context()); it.Seq != 3 {
		t.Errorf("the slot went to task %d; want 3, which has the higher priority", it.Seq)
	}
}
