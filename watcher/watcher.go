// Package watcher says when to look at a directory again. File events are hints: they may
// come late, twice or never, so the caller re-reads the directory and trusts only its
// content.
package watcher

import (
	"context"
	"sync"
	"time"
)

const (
	gap         = time.Millisecond       // the gap after a look while events keep coming: the first, and up to
	longest     = 3 * time.Millisecond   // the last; a longer one would delay each of 200 events a second after the first delay
	besideDelay = 100 * time.Millisecond // the delay of a look for beside directories
	poll        = time.Second            // between looks without events
)

// Watch calls look once at the start, at the first event in a directory, at short intervals
// while events continue, after the last event, and every rescan (at most 24 hours; 30
// seconds if not positive). It blocks until ctx ends and then returns nil. Calls of look
// never overlap, and are made in the caller's goroutine.
//
// The directories may vanish and come back. Where the system gives no events or only some,
// such as on a network file system, Watch looks every second instead.
func Watch(ctx context.Context, dirs []string, rescan time.Duration, look func()) error {
	return WatchBeside(ctx, dirs, nil, rescan, look)
}

// WatchBeside is Watch with additional directories, such as one that the caller itself
// fills. An event there causes a look within a tenth of a second, together with later
// events.
func WatchBeside(ctx context.Context, dirs, beside []string, rescan time.Duration, look func()) error {
	if rescan <= 0 {
		rescan = 30 * time.Second
	}
	h := newHints()
	e := &listener{dirs: dirs, beside: beside, rescan: min(rescan, 24*time.Hour)}
	var running sync.WaitGroup
	running.Go(func() { e.listen(ctx, h) })
	pace(ctx, h, look)
	running.Wait()
	return nil
}

// hints are requests for a look, at most one of each kind.
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
