package service

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestALedgerThatDoesNotAnswerStarvesTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		meals, stuck := 0, make(chan struct{})
		probe := func() {
			if meals == 3 {
				<-stuck
			}
		}
		var work sync.WaitGroup
		work.Go(func() { feedWatchdog(ctx, time.Second, probe, func() { meals++ }) })
		time.Sleep(time.Hour)
		synctest.Wait()
		if meals != 3 {
			t.Errorf("the watchdog was fed %d times; want 3, before the probe got stuck", meals)
		}
		stop()
		close(stuck)
		work.Wait()
	})
}
