package watcher

import (
	"context"
	"time"
)

// pace turns hints into looks: the first at once, the next not before the gap
// is over. Hints that come meanwhile are one hint, and it waits for nobody, so
// a busy writer cannot put a look off.
func pace(ctx context.Context, hints <-chan struct{}, look func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
		}
		if ctx.Err() != nil {
			return // both were ready
		}
		look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(gap):
		}
	}
}
