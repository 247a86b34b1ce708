package watcher

import (
	"context"
	"time"
)

// pace turns hints into calls of look: the first at once, the next after a gap. Hints
// during a gap count as one, so a busy writer can't delay a look. The gap grows while hints
// keep coming: rare events are handled at once, a flood in few calls. Without hints, pace
// sleeps.
func pace(ctx context.Context, h hints, look func()) {
	var rested time.Time // end of the gap after the last call
	rest := gap
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.now:
		case <-h.soon:
			await(ctx, h.now, besideDelay)
		}
		if fast := time.Until(rested); fast > 0 {
			await(ctx, nil, fast)
			rest = min(2*rest, longest)
		} else {
			rest = gap
		}
		if ctx.Err() != nil {
			return // both were ready
		}
		h.drop() // this call serves these hints too
		look()
		rested = time.Now().Add(rest)
	}
}

// await waits for a hint, or for a time.
func await(ctx context.Context, hint <-chan struct{}, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-hint:
	case <-timer.C:
	}
}

// drop removes pending hints.
func (h hints) drop() {
	for _, at := range []chan struct{}{h.now, h.soon} {
		select {
		case <-at:
		default:
		}
	}
}
