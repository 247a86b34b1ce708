package watcher

import "time"

// Pace and Gap are for tests with a fake clock, which events of a real file
// system do not obey.
var Pace = pace

const Gap = gap

// IsSound reports what a rescan would find after something that gives no event.
func IsSound(dirs []string, unseen func()) bool {
	e := ear{dirs: dirs, next: time.NewTimer(time.Hour)}
	defer e.closing.Wait()
	defer e.replace(nil)
	defer e.next.Stop()
	e.anew()
	unseen()
	return e.sound()
}
