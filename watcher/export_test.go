package watcher

import "time"

// Pace and its gaps are for tests with a fake clock, which events of a real file
// system do not obey.
var Pace = pace

const (
	Gap     = gap
	Longest = longest
)

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
