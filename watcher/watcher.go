// Package watcher says when to look at a directory again. File events are
// hints: they may come late, twice or never, so the caller re-reads the
// directory and trusts only what it finds there.
package watcher

import (
	"context"
	"sync"
	"time"
)

const (
	gap  = 5 * time.Millisecond // between looks while events keep coming
	poll = time.Second          // between looks while events cannot be had
)

// Watch calls look once at the start, at the first event in one of the
// directories, at a small fixed distance while events go on, after the last of
// them, and every rescan (at most 24 hours, 30 seconds when not positive). It
// blocks until ctx ends and then returns nil. Look is never called twice at a
// time, and always by the goroutine that called Watch.
//
// The directories may vanish and come back. Where the system gives no events,
// or cannot see all that happens, such as on a network file system, Watch looks
// every second instead.
func Watch(ctx context.Context, dirs []string, rescan time.Duration, look func()) error {
	if rescan <= 0 {
		rescan = 30 * time.Second
	}
	hints := make(chan struct{}, 1) // one is enough: a hint only says "look"
	var ears sync.WaitGroup
	ears.Go(func() { listen(ctx, dirs, min(rescan, 24*time.Hour), hints) })
	pace(ctx, hints, look)
	ears.Wait()
	return nil
}

// hint asks for a look. When one is asked for already, that one will do.
func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}
