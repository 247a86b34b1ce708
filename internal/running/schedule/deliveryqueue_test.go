package schedule

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestDeliveriesAreTakenInTheirOrder(t *testing.T) {
	q := NewDeliveryQueue()
	for seq := range int64(3) {
		q.Add(seq + 1)
	}
	for want := range int64(3) {
		if seq, ok := q.Next(t.Context()); !ok || seq != want+1 {
			t.Errorf("Next = %d, %t; want %d", seq, ok, want+1)
		}
	}
}

func TestTheNextDeliveryIsWaitedForUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewDeliveryQueue()
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
			t.Errorf("deliveries %v; want 7", seqs)
		}
		cancel()
		serving.Wait()
		q.Add(8)
		if seq, ok := q.Next(ctx); ok {
			t.Errorf("Next = %d after the end; want none", seq)
		}
	})
}
