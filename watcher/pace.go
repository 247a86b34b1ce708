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
func pace(ctx context.Context, h hints, look func()) {
	var rested time.Time // when the gap after the last look is over
	rest := gap
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.now:
		case <-h.soon:
			await(ctx, h.now, patience)
		}
		if early := time.Until(rested); early > 0 {
			await(ctx, nil, early)
			rest = min(2*rest, longest)
		} else {
			rest = gap
		}
		if ctx.Err() != nil {
			return // both were ready
		}
		h.drop() // the look that comes is for these too
		look()
		rested = time.Now().Add(rest)
	}
}

// await waits for a hint, or so long.
func await(ctx context.Context, hint <-chan struct{}, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-hint:
	case <-timer.C:
	}
}

// drop takes back what is asked for.
func (h hints) drop() {
	for _, at := range []chan struct{}{h.now, h.soon} {
		select {
		case <-at:
		default:
		}
	}
}
