package watcher

import (
	"context"
	"time"
)

// Pace is for tests with a fake clock, because events of a real file system use the real one.
// Its hints are those for now and those for soon.
func Pace(ctx context.Context, now, soon chan struct{}, look func()) {
	pace(ctx, hints{now, soon}, look)
}

// The distances that it keeps.
const (
	Gap      = gap
	Longest  = longest
	Patience = besideDelay
)

// IsSound reports whether all watches are valid, as a rescan finds it after a change without
// an event.
func IsSound(dirs []string, unseen func()) bool {
	e := listener{dirs: dirs, next: time.NewTimer(time.Hour)}
	defer e.closing.Wait()
	defer e.replace(nil)
	defer e.next.Stop()
	e.rewatch()
	unseen()
	return e.valid()
}
