package core

import (
	"slices"
	"time"

	"mailboxd/internal/task"
)

// A Command is what somebody asks of the engine, with the facts that deciding about it
// needs. The types named in Decide are all there are.
type Command interface{ decide(*decision) error }

// Decide returns what happens because of a command. It changes nothing. An error is the
// answer to the caller; events that come with an error happen all the same, such as the
// record of a caller who isn't allowed to decide.
//
// The commands are Accept, Judge, Hold, Release, Answer, ReviewDue, Cancel, Resubmit,
// Intend, HoldRecovered, Finish, EndRun, Again, PutBack, KeepUnread, Reread, Void, Claim,
// Renew, Lapse, TakeAnswer, RefuseAnswer, Wait, Wake, Reconsider, SendBack, PassReview and
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

// add adds an event about a task that changes it.
func (d *decision) add(t *Task, c Change, kind task.Kind, data any) {
	d.events = append(d.events, Event{Task: t.Seq, Kind: kind, Data: data, Change: c})
}

// show adds an event about a task that changes nothing.
func (d *decision) show(t *Task, kind task.Kind, data any) {
	d.events = append(d.events, Event{Task: t.Seq, Kind: kind, Data: data})
}

// expiry is when a question that is asked now, or an approval that is given now, ends;
// zero is never.
func (d *decision) expiry() time.Time {
	if d.cfg.ApprovalTTL <= 0 {
		return time.Time{}
	}
	return d.now.Add(d.cfg.ApprovalTTL)
}

// wantsApproval reports whether an approval is among the reasons of a hold.
func wantsApproval(reasons []task.Reason) bool { return slices.Contains(reasons, task.Approval) }

// Startable reports whether what comes next for a task in that state is a start.
func Startable(s task.State) bool {
	return s == task.Received || s == task.Held || s == task.Queued
}

// Unread reports whether a task is held because the answer of its run can't be read:
// only Release, Cancel and a result file end that.
func Unread(t task.Task) bool {
	return t.State == task.Held && slices.Contains(t.Reasons, task.AnswerUnread)
}

// Earliest returns the earlier of two instants; zero is no instant.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// past reports whether an instant is over; zero is none.
func past(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// with returns event data with one more member.
func with(data map[string]any, key string, value any) map[string]any {
	data[key] = value
	return data
}

// stamp is how an instant stands in event data.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
