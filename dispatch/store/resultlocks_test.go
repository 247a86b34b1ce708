package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mailboxd/envelope"
)

// Who has the lock of an id waits 10 ms at times. A task that ended meanwhile had to
// wait for that too when they shared one of 64: of 16 that ended together nearly always some.
func TestNoTaskWaitsForTheNameOfAnother(t *testing.T) {
	n := newResultLocks()
	got := make(chan func())
	all := startAll(func() {
		for i := range 1000 {
			got <- n.Lock(envelope.ID(fmt.Sprint("t", i)))
		}
	})
	timeout := time.After(2 * time.Minute)
	var held []func()
	for len(held) < 1000 {
		select {
		case unlock := <-got:
			held = append(held, unlock)
		case <-timeout:
			t.Fatalf("the lock number %d waits; want each id to have its own", len(held)+1)
		}
	}
	all.Wait()
	for _, unlock := range held {
		unlock()
	}
	if len(n.held) != 0 {
		t.Errorf("%d locks are kept; want none that nobody has", len(n.held))
	}
}

func TestANameHasOneHolderAtATime(t *testing.T) {
	n := newResultLocks()
	holders := 0
	var all []func()
	for range 8 {
		all = append(all, func() {
			for range 200 {
				unlock := n.Lock("t1")
				if holders++; holders != 1 {
					t.Errorf("%d hold it; want one", holders)
				}
				holders--
				unlock()
			}
		})
	}
	startAll(all...).Wait()
	if len(n.held) != 0 {
		t.Errorf("%d locks are kept; want none that nobody has", len(n.held))
	}
}

// startAll runs functions, each in a goroutine that the returned group waits for.
func startAll(functions ...func()) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	return &group
}
