package schedule

import (
	"fmt"
	"runtime"
	"testing"
)

// BenchmarkWaitingItems is a queue that fills with a million items and empties: what
// an item costs in memory while it waits, when half of the items are taken, and in time.
func BenchmarkWaitingItems(b *testing.B) {
	const items = 1_000_000
	for _, c := range []struct{ agents, requesters, limit int }{{1, 1, 0}, {100, 1, 0}, {1, 1000, 0}, {1, 1000, 5}, {1, items, 0}} {
		b.Run(fmt.Sprintf("agents=%d/requesters=%d/limit=%d", c.agents, c.requesters, c.limit), func(b *testing.B) {
			names := make([]string, max(c.agents, c.requesters))
			for i := range names {
				names[i] = fmt.Sprint("name", i)
			}
			for b.Loop() {
				before := heapInUse()
				q := NewQueue(1, items, c.limit, limitOf(1))
				for n := range items {
					q.Push(an(int64(n+1), names[n%c.agents], names[n%c.requesters]))
				}
				full := heapInUse()
				for n := range items {
					if n == items/2 {
						b.ReportMetric(float64(heapInUse()-before)/items*2, "B/item-half")
					}
					it, _ := q.Take(b.Context())
					q.Release(it)
					q.Done()
				}
				b.ReportMetric(float64(full-before)/items, "B/item")
				runtime.KeepAlive(q)
			}
			runtime.KeepAlive(names)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items, "ns/item")
		})
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
