package daemon

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPagesAreUnmappedAtTheStartAndAfterWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var change atomic.Value
		change.Store(make(chan struct{}))
		changed := func() <-chan struct{} { return change.Load().(chan struct{}) }
		work := func() { close(change.Swap(make(chan struct{})).(chan struct{})) }
		var unmapped atomic.Int64
		expect := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := unmapped.Load(); got != want {
				t.Errorf("%s: unmapped %d times; want %d", when, got, want)
			}
		}
		ready := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { _ = unmapAtRest(ctx, ready, changed, func() { unmapped.Add(1) }) })
		expect("before it is ready", 0)
		close(ready)
		time.Sleep(time.Hour)
		expect("after an hour without work", 1)
		for range 9 { // for somewhat less than three times unmapAfter
			work()
			time.Sleep(unmapAfter/3 + time.Millisecond)
		}
		time.Sleep(time.Hour)
		expect("an hour after work", 4)
		work()
		stop()
		running.Wait()
		expect("at the end", 4)
	})
}
