package core

import (
	"time"

	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// due returns when a task is looked at again, beside what wakes it; zero: at no time. Each event
// that adds or moves a task has it, and the ledger keeps it with the task.
//
// The end of a pause between attempts is no time of day: the pause goes by the boot clock.
func due(t Task, now time.Time) (at time.Time) {
	switch t.State {
	case task.Queued:
		at = t.Deadline
	case task.Held:
		at = heldUntil(t.Task, now)
	case task.Waiting:
		at = Earliest(t.run().Terms.Deadline, t.Until)
	case task.Review:
		at = t.Until
	}
	return at.Truncate(time.Microsecond) // as the ledger keeps it
}

// heldUntil returns when a held task is looked at again.
func heldUntil(t task.Task, now time.Time) time.Time {
	switch {
	case conversation.Follows(t):
		return t.Deadline // whatever else holds it
	case t.WaitsForBudget():
		return Earliest(t.Until, Midnight(now)) // the daily budgets start again then
	case t.InBackoff():
		return time.Time{}
	}
	return t.Until
}

// Midnight returns when the next daily budgets begin.
func Midnight(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
