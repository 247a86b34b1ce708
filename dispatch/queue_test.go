package dispatch

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func an(seq int64, agent, requester string) item {
	return item{seq: seq, agent: agent, requester: requester}
}

func limitOf(n int) func(string) int { return func(string) int { return n } }

func TestTheOldestTaskWithRoomGoesFirst(t *testing.T) {
	q := newQueue(9, 10, 0, limitOf(1))
	for _, it := range []item{an(1, "a", "x"), an(2, "a", "x"), an(3, "b", "x")} {
		q.push(it)
	}
	first, _ := q.take(t.Context())
	second, _ := q.take(t.Context())
	if first.seq != 1 || second.seq != 3 {
		t.Errorf("took %d, %d; want 1, then 3, because a is at its limit", first.seq, second.seq)
	}
	q.free(first)
	if third, _ := q.take(t.Context()); third.seq != 2 {
		t.Errorf("took %d; want 2 when a has room again", third.seq)
	}
}

func TestARequesterAtItsLimitStepsAside(t *testing.T) {
	q := newQueue(9, 10, 1, limitOf(9))
	for _, it := range []item{an(1, "a", "greedy"), an(2, "a", "greedy"), an(3, "a", "modest"), an(4, "a", "greedy")} {
		q.push(it)
	}
	first, _ := q.take(t.Context())
	second, _ := q.take(t.Context())
	if first.seq != 1 || second.seq != 3 {
		t.Errorf("took %d, %d; want 1, 3", first.seq, second.seq)
	}
	q.free(first)
	if third, _ := q.take(t.Context()); third.seq != 2 {
		t.Errorf("took %d; want 2", third.seq)
	}
}

func TestTakeWaitsForWorkAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(9, 10, 0, limitOf(1))
		ctx, cancel := context.WithCancel(t.Context())
		took := make(chan bool, 2)
		taker := func() { _, ok := q.take(ctx); took <- ok }
		running := startAll(taker, taker)
		synctest.Wait()
		q.push(an(1, "a", "x"))
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
		q := newQueue(2, 10, 0, limitOf(2))
		ctx, cancel := context.WithCancel(t.Context())
		took := make(chan bool, 3)
		taker := func() { _, ok := q.take(ctx); took <- ok }
		running := startAll(taker, taker, taker)
		handed, not := an(1, "a", "x"), an(2, "a", "x")
		if !q.claim(handed) || !q.claim(not) {
			t.Fatal("claim = false with two free slots; want true")
		}
		cancel()
		synctest.Wait()
		q.hand(handed)
		if !<-took {
			t.Error("take = false; want the item that was claimed before the end")
		}
		q.free(not)
		q.unclaim()
		for range 2 {
			if <-took {
				t.Error("take = true when nothing can be handed any more; want false")
			}
		}
		running.Wait()
	})
}

func TestIntakePausesAtAFullQueueAndIsToldOfRoom(t *testing.T) {
	q := newQueue(9, 2, 0, limitOf(9))
	q.push(an(1, "a", "x"))
	if !q.hasRoom() {
		t.Fatal("hasRoom = false with 1 of 2; want true")
	}
	q.push(an(2, "a", "x"))
	if q.hasRoom() {
		t.Fatal("hasRoom = true with 2 of 2; want false")
	}
	q.take(t.Context())
	select {
	case <-q.room:
	default:
		t.Error("room is not signalled after a take")
	}
}

func TestIdleWaitsForWhatIsBeingFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(9, 2, 0, limitOf(9))
		q.push(an(1, "a", "x"))
		it, _ := q.take(t.Context())
		idle := false
		waiting := startAll(func() { idle = q.idle(t.Context()) == nil })
		synctest.Wait()
		q.free(it)
		synctest.Wait()
		if idle {
			t.Error("idle before done")
		}
		q.done()
		waiting.Wait()
		if !idle {
			t.Error("not idle after done")
		}
	})
}

func TestAnAdoptedRunTakesASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 9, 0, limitOf(9))
		old := an(1, "a", "x")
		q.adopt(old)
		q.push(an(2, "b", "x"))
		var took item
		taking := startAll(func() { took, _ = q.take(t.Context()) })
		synctest.Wait()
		if took.seq != 0 {
			t.Fatalf("took %d while the only slot was taken", took.seq)
		}
		q.free(old)
		taking.Wait()
		if took.seq != 2 {
			t.Errorf("took %d; want 2", took.seq)
		}
	})
}

func TestALongLineKeepsItsOrderWhoeverStepsAside(t *testing.T) {
	l := &items{agent: "a"}
	var want []int64
	for seq := range int64(3000) {
		requester := "x"
		if seq%7 == 0 {
			requester = "y"
		}
		l.push(an(seq, "a", requester))
		want = append(want, seq)
		if seq%3 == 2 { // from the front, the middle and the end by turns
			at := []int{0, len(want) / 2, len(want) - 1}[seq/3%3]
			want = slices.Delete(want, at, at+1)
			if l.remove(at) {
				t.Fatalf("remove(%d) = the last one; %d are left", at, len(want))
			}
		}
	}
	n := 0
	for at, it := range l.all() {
		requester := map[bool]string{true: "y", false: "x"}[it.seq%7 == 0]
		if at != n || n >= len(want) || it != an(want[n], "a", requester) {
			t.Fatalf("item %d = %d, %+v; want %d of a and %s", n, at, it, want[min(n, len(want)-1)], requester)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d items; want %d", n, len(want))
	}
	for range want[1:] {
		l.remove(0)
	}
	if !l.remove(0) || len(l.blocks) != 0 {
		t.Errorf("%d blocks after the last item; want none", len(l.blocks))
	}
}
