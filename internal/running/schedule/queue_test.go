package schedule

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func an(seq int64, agent, requester string) Item {
	return Item{Seq: seq, Agent: agent, Requester: requester}
}

func limitOf(n int) func(string) int { return func(string) int { return n } }

func TestTheOldestTaskWithRoomGoesFirst(t *testing.T) {
	q := NewQueue(9, 10, 0, limitOf(1))
	for _, it := range []Item{an(1, "a", "x"), an(2, "a", "x"), an(3, "b", "x")} {
		q.Push(it)
	}
	first, _ := q.Take(t.Context())
	second, _ := q.Take(t.Context())
	if first.Seq != 1 || second.Seq != 3 {
		t.Errorf("took %d, %d; want 1, then 3, because a is at its limit", first.Seq, second.Seq)
	}
	q.Release(first)
	if third, _ := q.Take(t.Context()); third.Seq != 2 {
		t.Errorf("took %d; want 2 when a has room again", third.Seq)
	}
}

func TestARequesterAtItsLimitStepsAside(t *testing.T) {
	q := NewQueue(9, 10, 1, limitOf(9))
	for _, it := range []Item{an(1, "a", "greedy"), an(2, "a", "greedy"), an(3, "a", "modest"), an(4, "a", "greedy")} {
		q.Push(it)
	}
	first, _ := q.Take(t.Context())
	second, _ := q.Take(t.Context())
	if first.Seq != 1 || second.Seq != 3 {
		t.Errorf("took %d, %d; want 1, 3", first.Seq, second.Seq)
	}
	q.Release(first)
	if third, _ := q.Take(t.Context()); third.Seq != 2 {
		t.Errorf("took %d; want 2", third.Seq)
	}
}

func TestAHigherPriorityGoesFirst(t *testing.T) {
	q := NewQueue(1, 10, 1, limitOf(1))
	for _, it := range []Item{
		{Seq: 1, Agent: "a", Requester: "x"}, {Seq: 2, Agent: "a", Requester: "x", Priority: 3}, {Seq: 3, Agent: "b", Requester: "x", Priority: 3},
		{Seq: 4, Agent: "a", Requester: "y", Priority: 9}, {Seq: 5, Agent: "a", Requester: "x", Priority: 3}, {Seq: 6, Agent: "b", Requester: "y", Priority: -1},
	} {
		q.Push(it)
	}
	var order []int64
	for range 6 {
		it, _ := q.Take(t.Context())
		order = append(order, it.Seq)
		q.Release(it)
	}
	if want := []int64{4, 2, 3, 5, 1, 6}; !slices.Equal(order, want) {
		t.Errorf("took %v; want %v", order, want)
	}
}

func TestARequesterAtItsLimitStepsAsideWithEveryPriority(t *testing.T) {
	q := NewQueue(9, 10, 1, limitOf(9))
	for _, it := range []Item{
		{Seq: 1, Agent: "a", Requester: "greedy", Priority: 5}, {Seq: 2, Agent: "a", Requester: "greedy", Priority: 4},
		{Seq: 3, Agent: "a", Requester: "greedy"}, {Seq: 4, Agent: "a", Requester: "modest", Priority: -2},
	} {
		q.Push(it)
	}
	first, _ := q.Take(t.Context())
	second, _ := q.Take(t.Context())
	if first.Seq != 1 || second.Seq != 4 {
		t.Errorf("took %d, %d; want 1, 4", first.Seq, second.Seq)
	}
	q.Release(first)
	third, _ := q.Take(t.Context())
	q.Release(third)
	if last, _ := q.Take(t.Context()); third.Seq != 2 || last.Seq != 3 {
		t.Errorf("took %d, %d; want 2, 3", third.Seq, last.Seq)
	}
}

// startTakers has goroutines take one item each until cancel, and say whether they did.
func startTakers(t *testing.T, q *Queue, n int) (took chan bool, cancel func(), running *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(t.Context())
	took = make(chan bool, n)
	taker := func() { _, ok := q.Take(ctx); took <- ok }
	return took, cancel, startAll(slices.Repeat([]func(){taker}, n)...)
}

func TestTakeWaitsForWorkAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(9, 10, 0, limitOf(1))
		took, cancel, running := startTakers(t, q, 2)
		synctest.Wait()
		q.Push(an(1, "a", "x"))
		if !<-took {
			t.Error("take = false; want the item that was pushed")
		}
		cancel()
		if <-took {
			t.Error("take = true after its context ended; want false")
		}
		running.Wait()
	})
}

func TestWhatWasClaimedBeforeTheEndIsTakenAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(2, 10, 0, limitOf(2))
		took, cancel, running := startTakers(t, q, 3)
		handed, not := an(1, "a", "x"), an(2, "a", "x")
		if !q.Reserve(handed) || !q.Reserve(not) {
			t.Fatal("claim = false with two free slots; want true")
		}
		cancel()
		synctest.Wait()
		q.PushBegun(handed)
		if !<-took {
			t.Error("take = false; want the item that was claimed before the end")
		}
		q.Release(not)
		q.CancelReservation()
		for range 2 {
			if <-took {
				t.Error("take = true when nothing can be handed any more; want false")
			}
		}
		running.Wait()
	})
}

func TestIntakePausesAtAFullQueueAndIsToldOfRoom(t *testing.T) {
	q := NewQueue(9, 2, 0, limitOf(9))
	q.Push(an(1, "a", "x"))
	if !q.HasRoom() {
		t.Fatal("hasRoom = false with 1 of 2; want true")
	}
	q.Push(an(2, "a", "x"))
	if q.HasRoom() {
		t.Fatal("hasRoom = true with 2 of 2; want false")
	}
	q.Take(t.Context())
	select {
	case <-q.room:
	default:
		t.Error("room is not signalled after a take")
	}
}

func TestIdleWaitsForWhatIsBeingFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(9, 2, 0, limitOf(9))
		q.Push(an(1, "a", "x"))
		it, _ := q.Take(t.Context())
		idle := false
		waiting := startAll(func() { idle = q.WaitIdle(t.Context()) == nil })
		synctest.Wait()
		q.Release(it)
		synctest.Wait()
		if idle {
			t.Error("idle before done")
		}
		q.Done()
		waiting.Wait()
		if !idle {
			t.Error("not idle after done")
		}
	})
}

func TestAnAdoptedRunTakesASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 9, 0, limitOf(9))
		old := an(1, "a", "x")
		q.Adopt(old)
		q.Push(an(2, "b", "x"))
		var took Item
		taking := startAll(func() { took, _ = q.Take(t.Context()) })
		synctest.Wait()
		if took.Seq != 0 {
			t.Fatalf("took %d while the only slot was taken", took.Seq)
		}
		q.Release(old)
		taking.Wait()
		if took.Seq != 2 {
			t.Errorf("took %d; want 2", took.Seq)
		}
	})
}

// model is the same queue of one agent, the simple way: a list that is searched.
type model struct {
	waiting []Item
	taken   map[string]int
}

func (m *model) next(limit int) Item {
	for i, it := range m.waiting {
		if m.taken[it.Requester] < limit {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			m.taken[it.Requester]++
			return it
		}
	}
	return Item{}
}

func TestTheOldestItemWithRoomIsNextAfterAnyHistory(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := 1 + random.IntN(3)
		q, m := NewQueue(1000, 9, limit, limitOf(1000)), &model{taken: map[string]int{}}
		var running []Item
		for step := range int64(3000) {
			switch random.IntN(5) {
			case 0, 1:
				it := an(step+1, "a", string(rune('p'+random.IntN(5))))
				q.Push(it)
				m.waiting = append(m.waiting, it)
			case 2:
				got, _ := q.next()
				if want := m.next(limit); got != want {
					t.Fatalf("seed %d, step %d: next = %+v; want %+v", seed, step, got, want)
				}
				if got.Seq != 0 {
					running = append(running, got)
				}
			case 3:
				if n := len(running); n > 0 {
					at := random.IntN(n)
					q.Release(running[at])
					m.taken[running[at].Requester]--
					running = slices.Delete(running, at, at+1)
				}
			case 4:
				if random.IntN(200) > 0 {
					continue
				}
				back := q.TakeBack("a", 10)
				if want := m.waiting[:min(10, len(m.waiting))]; !slices.Equal(back, want) {
					t.Fatalf("seed %d, step %d: TakeBack = %v; want %v", seed, step, back, want)
				}
				m.waiting = slices.Clone(m.waiting[len(back):])
			}
		}
	}
}

func TestATakeLooksAtFewItemsHoweverManyABusyRequesterHas(t *testing.T) {
	const many = 1000
	q := NewQueue(9, many, 1, limitOf(9))
	q.Push(an(1, "a", "greedy"))
	if _, ok := q.next(); !ok {
		t.Fatal("next = false; want the first item")
	}
	for seq := range int64(many) {
		q.Push(an(seq+2, "a", "greedy"))
	}
	q.Push(an(many+2, "a", "modest"))
	q.visited = 0
	if it, ok := q.next(); !ok || it.Requester != "modest" {
		t.Fatalf("next = %+v, %v; want the task of modest", it, ok)
	}
	if q.visited < 1 || q.visited > 10 {
		t.Errorf("%d items visited for one take; want a few", q.visited)
	}
}

func TestManyTakesLookAtFewRequestersThatStayAtTheirLimits(t *testing.T) {
	const many = 1000
	q := NewQueue(2*many, many, 1, limitOf(2*many))
	for n := range int64(many) {
		requester := string(rune(n + 1000))
		q.Push(an(2*n+1, "a", requester))
		q.Push(an(2*n+2, "a", requester))
	}
	for {
		if _, ok := q.next(); !ok {
			break
		}
	}
	if q.visited < many || q.visited > 3*many {
		t.Errorf("%d items visited for %d takes; want each requester once more when it is at its limit", q.visited, many)
	}
}

func TestReleasedIsCalledWhenTheSlotIsFree(t *testing.T) {
	q := NewQueue(9, 10, 0, limitOf(1))
	var loads []int
	q.Released = func() { loads = append(loads, q.Load("a")) }
	q.Push(Item{Seq: 1, Agent: "a"})
	it, ok := q.Take(t.Context())
	if !ok {
		t.Fatal("Take() = false; want the item")
	}
	q.Release(it)
	if !slices.Equal(loads, []int{0}) {
		t.Errorf("the loads of a at each release are %v; want a 0", loads)
	}
}
