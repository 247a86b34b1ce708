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
	gap      = time.Millisecond       // after a look, when events keep coming: the first, and up to
	longest  = 3 * time.Millisecond   // the last; with more, 200 events a second would be met late for ever, once one was
	patience = 100 * time.Millisecond // before a look for what nobody waits for
	poll     = time.Second            // between looks while events cannot be had
)

// Watch calls look once at the start, at the first event in one of the
// directories, at small distances while events go on, after the last of
// them, and every rescan (at most 24 hours, 30 seconds when not positive). It
// blocks until ctx ends and then returns nil. Look is never called twice at a
// time, and always by the goroutine that called Watch.
//
// The directories may vanish and come back. Where the system gives no events,
// or cannot see all that happens, such as on a network file system, Watch looks
// every second instead.
func Watch(ctx context.Context, dirs []string, rescan time.Duration, look func()) error {
	return WatchBeside(ctx, dirs, nil, rescan, look)
}

// WatchBeside is Watch with other directories beside, such as one that the
// caller itself fills: what happens there is looked at within a tenth of a
// second, together with what else comes until then.
func WatchBeside(ctx context.Context, dirs, beside []string, rescan time.Duration, look func()) error {
	if rescan <= 0 {
		rescan = 30 * time.Second
	}
	h := newHints()
	e := &ear{dirs: dirs, beside: beside, rescan: min(rescan, 24*time.Hour)}
	var ears sync.WaitGroup
	ears.Go(func() { e.listen(ctx, h) })
	pace(ctx, h, look)
	ears.Wait()
	return nil
}

// hints ask for a look. When one is asked for already, that one will do, so of
// each kind there is one at most.
type hints struct {
	now, soon chan struct{}
}

func newHints() hints { return hints{make(chan struct{}, 1), make(chan struct{}, 1)} }

func hint(at chan<- struct{}) {
	select {
	case at <- struct{}{}:
	default:
	}
}
