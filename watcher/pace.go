package watcher

import (
	"context"
	"time"
)

// pace turns hints into looks: the first at once, the next not before a gap is
// over. Hints that come meanwhile are one hint, and it waits for nobody, so
// a busy writer cannot put a look off. The gap grows as long as hints keep
// coming in it: what comes now and then is met at once, and a flood in few
// looks. Without hints it sleeps.
func pace(ctx context.Context, hints <-chan struct{}, look func()) {
	var rested time.Time // when the gap after the last look is over
	rest := gap
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
		}
		if early := time.Until(rested); early > 0 {
			rest = min(2*rest, longest)
			select {
			case <-ctx.Done():
			case <-time.After(early):
			}
			select {
			case <-hints: // the look that comes is for this one too
			default:
			}
		} else {
			rest = gap
		}
		if ctx.Err() != nil {
			return // both were ready
		}
		look()
		rested = time.Now().Add(rest)
	}
}
