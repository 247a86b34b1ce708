package main

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestADaemonGivesBackAtItsStartAndOnceAfterEachSpellOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex // guards what follows
		change, given := make(chan struct{}), 0
		changed := func() <-chan struct{} {
			mu.Lock()
			defer mu.Unlock()
			return change
		}
		work := func() {
			mu.Lock()
			defer mu.Unlock()
			close(change)
			change = make(chan struct{})
		}
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if mu.Lock(); given != want {
				t.Errorf("%s: gave back %d times; want %d", when, given, want)
			}
			mu.Unlock()
		}
		ready := make(chan struct{})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_ = rest(ctx, ready, changed, func() {
				mu.Lock()
				defer mu.Unlock()
				given++
			})
		})
		expect("before it is ready", 0)
		close(ready)
		time.Sleep(time.Hour)
		expect("after an hour without work", 1)
		for range 100 {
			work()
			time.Sleep(resting / 3)
		}
		expect("while there is work", 1)
		time.Sleep(time.Hour)
		expect("an hour after it", 2)
		work()
		stop()
		waiting.Wait()
		expect("at the end", 2)
	})
}
