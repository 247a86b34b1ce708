package dispatch

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestEachJobBeginsAtOnceHoweverManyAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(1)
		var begun sync.WaitGroup
		for range 3 { // with nobody there, with one who waits, and again
			begun.Add(5)
			hold := make(chan struct{})
			for range 5 {
				c.do(func() { begun.Done(); <-hold })
			}
			begun.Wait() // for good, were one of them not begun before another has ended
			close(hold)
			synctest.Wait()
		}
		c.dismiss()
		c.wait()
	})
}

func TestACrewIsWaitedForAlsoWhenItIsDismissedInTheMiddleOfItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, hold, done := newCrew(9), make(chan struct{}), 0
		c.do(func() { <-hold; done++ })
		c.dismiss()
		gone := startAll(c.wait)
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
