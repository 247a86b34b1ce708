package watcher

import (
	"context"
	"time"
)

// Pace is for tests with a fake clock, which events of a real file system do not
// obey. Its hints are those for now and those for soon.
func Pace(ctx context.Context, now, soon chan struct{}, look func()) {
	pace(ctx, hints{now, soon}, look)
}

// The distances that it keeps.
const (
	Gap      = gap
	Longest  = longest
	Patience = besideDelay
)

// IsSound reports what a rescan would find after something that gives no event.
func IsSound(dirs []string, unseen func()) bool {
	e := listener{dirs: dirs, next: time.NewTimer(time.Hour)}
	defer e.closing.Wait()
	defer e.replace(nil)
	defer e.next.Stop()
	e.rewatch()
	unseen()
	return e.valid()
}
