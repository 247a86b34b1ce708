package owner

import (
	"time"

	"mailboxd/internal/decisions/fleet"
)

// Assigned returns what the state machine has of a run.
func (o *Owner) Assigned(token fleet.Token) (fleet.Assignment, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.core == nil {
		return fleet.Assignment{}, false
	}
	return o.core.Assigned(token)
}

// NoteHub takes how keeping a file for a runner ended at the hub.
func (o *Owner) NoteHub(runner string, err error) { o.files.hubFaults.note(runner, err) }

// Settles reports whether the files of an outcome are being brought.
func (o *Owner) Settles(token fleet.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.runs[token]
	return one != nil && one.answer != nil
}

// Awaits reports whether the outcome of a run is awaited, or isn't durable.
func (o *Owner) Awaits(token fleet.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs[token] != nil
}

// StopFollowing sets what stops the live lines of a run.
func (o *Owner) StopFollowing(token fleet.Token, stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[token].follow, o.runs[token].followed = stop, time.Now()
}

// LinkChanged takes that the connection was lost, or is back.
func (o *Owner) LinkChanged(lost error) { o.linkChanged(lost) }
