package schedule

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestEachJobBeginsAtOnceHoweverManyAreRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewWorkerPool(1)
		var begun sync.WaitGroup
		for range 3 { // with no goroutine there, with one that waits, and again
			begun.Add(5)
			hold := make(chan struct{})
			for range 5 {
				pool.Go(func() { begun.Done(); <-hold })
			}
			begun.Wait() // for good, were one of them not begun before another has ended
			close(hold)
			synctest.Wait()
		}
		pool.Close()
		pool.Wait()
	})
}

func TestWaitWaitsForAJobThatRunsWhileThePoolIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, hold, done := NewWorkerPool(9), make(chan struct{}), 0
		pool.Go(func() { <-hold; done++ })
		pool.Close()
		gone := startAll(pool.Wait)
		synctest.Wait()
		if done > 0 {
			t.Error("the job is done before it could be")
		}
		close(hold)
		gone.Wait()
		if done != 1 {
			t.Errorf("wait returned with %d jobs done; want 1", done)
		}
	})
}
