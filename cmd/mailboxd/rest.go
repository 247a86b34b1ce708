package main

import (
	"context"
	"runtime/debug"
	"time"
)

// resting is how long nothing must have changed before what work took is given
// back: that and having it again take 10 ms of a processor, which somebody who
// sends one task after the other is not to pay for each.
const resting = 10 * time.Second

// rest gives back once at the start, and again when there was work and nothing
// has changed for a while, until ctx ends. Changed is as the ledger's.
func rest(ctx context.Context, ready <-chan struct{}, changed func() <-chan struct{}, giveBack func()) error {
	select {
	case <-ctx.Done():
	case <-ready:
	}
	for ctx.Err() == nil {
		work := changed()
		giveBack()
		select {
		case <-ctx.Done():
		case <-work:
		}
		for busy := true; busy && ctx.Err() == nil; {
			work = changed()
			pause(ctx, resting)
			select {
			case <-work:
			default:
				busy = false
			}
		}
	}
	return nil
}

// giveBack gives the system what memory nothing needs now. The runtime would do
// it too, for its own, over some minutes, and wake up for it.
func giveBack() {
	debug.FreeOSMemory()
	unmap()
}
