package owner

import (
	"sync"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/schedule"
)

// An objectAt is a commit of a repository, or an artifact, on its way to a runner.
type objectAt struct {
	runner     string
	repository string // "": an artifact
	digest     string // of the commit or the artifact
}

// unsent are the bundles and artifacts at the hub whose jobs were not sent, because that took longer than a claim is
// pending. The next attempt at the same runner uses them, and so sends its job in time.
type unsent struct {
	mu  sync.Mutex
	all map[objectAt]fleet.Object

	failed map[int64]int // how often the job of a task could not be sent, since it last was
}

// mostUnsent limits the objects that are remembered. The hub removes what stays after a while.
const mostUnsent = 1000

func (u *unsent) keep(at objectAt, object fleet.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil || len(u.all) >= mostUnsent {
		u.all = map[objectAt]fleet.Object{}
	}
	u.all[at] = object
}

// take returns an object, and forgets it: the run that uses it removes it at its end.
func (u *unsent) take(at objectAt) (object fleet.Object, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	object, ok = u.all[at]
	delete(u.all, at)
	return object, ok
}

// ended counts how sending the job of a task ended. It returns a *schedule.UnsentError, or nil.
func (u *unsent) ended(seq int64, err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.failed, seq)
		return nil
	}
	if u.failed == nil || len(u.failed) >= mostUnsent {
		u.failed = map[int64]int{} // some were cancelled meanwhile
	}
	u.failed[seq]++
	return &schedule.UnsentError{Err: err, Failed: u.failed[seq]}
}
