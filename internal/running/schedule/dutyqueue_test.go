package schedule

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func newDuties(t *testing.T) (*Queue, *DutyQueue) {
	q := NewQueue(1, 1, 0, func(string) int { return 1 })
	return q, NewDutyQueue(q)
}

func TestDutiesAreTakenInTheirOrder(t *testing.T) {
	_, q := newDuties(t)
	for seq := range int64(3) {
		q.Add(seq + 1)
	}
	for want := range int64(3) {
		if seq, ok := q.Next(t.Context()); !ok || seq != want+1 {
			t.Errorf("Next = %d, %t; want %d", seq, ok, want+1)
		}
	}
}

func TestSomeDutiesAreTakenAtOnceAndATaskOfThemWithAllItsDuties(t *testing.T) {
	_, q := newDuties(t)
	for _, seq := range []int64{5, 0, 5, 7, 0, 9} {
		q.Add(seq)
	}
	for _, want := range [][]int64{{5, 0, 5}, {7, 0}, {9}, {}} {
		if got := q.Take(2); !slices.Equal(got, want) {
			t.Errorf("Take(2) = %v; want %v", got, want)
		}
	}
}

func TestTheNextDutyIsWaitedForUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, q := newDuties(t)
		ctx, cancel := context.WithCancel(t.Context())
		var seqs []int64
		serving := startAll(func() {
			for {
				seq, ok := q.Next(ctx)
				if !ok {
					return
				}
				seqs = append(seqs, seq)
			}
		})
		synctest.Wait()
		q.Add(7)
		synctest.Wait()
		if len(seqs) != 1 || seqs[0] != 7 {
			t.Errorf("duties %v; want 7", seqs)
		}
		cancel()
		serving.Wait()
		q.Add(8)
		if seq, ok := q.Next(ctx); ok {
			t.Errorf("Next = %d after the end; want none", seq)
		}
	})
}

func TestTheEngineIsBusyUntilAllDutiesAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, q := newDuties(t)
		q.Add(1)
		q.Add(2)
		idle, all := false, false
		waiting := startAll(
			func() { idle = queue.WaitIdle(t.Context()) == nil },
			func() { all = q.Await(t.Context()) == nil })
		q.Take(9)
		q.Done(1)
		synctest.Wait()
		if idle || all {
			t.Errorf("idle %t, all done %t while a duty is left", idle, all)
		}
		q.Done(1)
		waiting.Wait()
		if !idle || !all {
			t.Errorf("idle %t, all done %t after the last duty; want both", idle, all)
		}

		q.Add(3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Await(ctx); err == nil {
			t.Error("Await = nil after the end of its context, with a duty left")
		}
	})
}
