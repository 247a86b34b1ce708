package conversation

import (
	"slices"

	"mailboxd/internal/task"
)

// Suspends reports whether a hold for a reason ends with a message, or with the end of
// other tasks.
func Suspends(r task.Reason) bool { return r == task.Children || r == task.Reply }

// Suspended reports whether a task is held for a message or for other tasks.
func Suspended(t task.Task) bool {
	return t.State == task.Held && slices.ContainsFunc(t.Reasons, Suspends)
}

// AwaitsReply reports whether a task is held for a message.
func AwaitsReply(t task.Task) bool {
	return t.State == task.Held && slices.Contains(t.Reasons, task.Reply)
}
