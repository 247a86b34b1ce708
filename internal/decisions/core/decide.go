package core

import (
	"slices"
	"time"

	"mailboxd/internal/decisions/task"
)

// A Command is a request to the engine, with the facts that the decision needs. The doc
// comment of Decide lists all commands.
type Command interface{ decide(*decision) error }

// Decide returns the events of a command. It changes nothing. An error is for the caller;
// events that come with an error are valid too, such as the record of a caller who isn't
// allowed to decide.
//
// The commands are Accept, Judge, Route, Unbind, Hold, Release, Answer, ReviewDue, Cancel, Resubmit,
// Intend, HoldRecovered, HoldQueued, HoldRestored, Finish, EndRun, Retry, PutBack, KeepUnread, Reread,
// Void, NoteReach, Claim, Renew, Lapse, TakeAnswer, RefuseAnswer, Wait, Wake, Reevaluate, SendBack, PassReview and
// FailReview.
func Decide(s *State, c Command, cfg Config, now time.Time) ([]Event, error) {
	d := decision{state: s, cfg: cfg, now: now}
	err := c.decide(&d)
	return d.events, err
}

// A decision collects the events of one command.
type decision struct {
	state  *State
	cfg    Config
	now    time.Time
	events []Event
}

// add adds an event that changes a task.
func (d *decision) add(t *Task, c Change, kind task.Kind, data any) {
	switch c := c.(type) {
	case *Added:
		c.Task.Due = due(Task{Task: c.Task}, d.now)
	case *Moved:
		if c.From == task.Running && c.To != task.Running {
			d.voidCalls(t)
		}
		after := *t
		after.State, after.Reasons, after.Until = c.To, c.Reasons, c.Until
		c.Due = due(after, d.now)
	}
	d.events = append(d.events, Event{Task: t.Seq, Kind: kind, Data: data, Change: c})
}

// show adds an event for readers that changes nothing.
func (d *decision) show(t *Task, kind task.Kind, data any) {
	d.events = append(d.events, Event{Task: t.Seq, Kind: kind, Data: data})
}

// expiry returns the end of a question asked now or an approval given now; zero: never.
func (d *decision) expiry() time.Time {
	if d.cfg.ApprovalTTL <= 0 {
		return time.Time{}
	}
	return d.now.Add(d.cfg.ApprovalTTL)
}

// WantsApproval reports whether a hold asks a person to approve the start of its task.
func WantsApproval(reasons []task.Reason) bool { return slices.Contains(reasons, task.Approval) }

// Startable reports whether the next step of a task in a state is its start.
func Startable(s task.State) bool {
	return s == task.Received || s == task.Held || s == task.Queued
}

// Unread reports whether a task is held because the answer of its run can't be read. Only
// Release, Cancel or a result file ends this hold.
func Unread(t task.Task) bool {
	return t.State == task.Held && slices.Contains(t.Reasons, task.AnswerUnread)
}

// Earliest returns the earlier of two times; zero means no time.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// IsPast reports whether a time is over; zero never is.
func IsPast(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// with returns event data with one more key.
func with(data map[string]any, key string, value any) map[string]any {
	data[key] = value
	return data
}

// formatTime formats a time for event data.
func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
