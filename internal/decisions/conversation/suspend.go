package conversation

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Suspends reports whether a message or the end of other tasks ends a hold for a reason.
func Suspends(r task.Reason) bool { return r == task.Children || r == task.Reply }

// Suspended reports whether a task is held for a message or for other tasks.
func Suspended(t task.Task) bool {
	return t.State == task.Held && slices.ContainsFunc(t.Reasons, Suspends)
}

// Follows reports whether a task gets the outcome of another task, which carries out the same
// command (CLUTCH-52).
func Follows(t task.Task) bool {
	return t.State == task.Held && slices.Contains(t.Reasons, task.SameCommand)
}

// AwaitsReply reports whether a task is held for a message.
func AwaitsReply(t task.Task) bool {
	return t.State == task.Held && slices.Contains(t.Reasons, task.Reply)
}

// Resumes reports whether a message with an act can resume a suspended task. A progress
// report can't.
func Resumes(act envelope.Act) bool {
	switch act {
	case envelope.Informs, envelope.Asks, envelope.ReportsStatus, envelope.Inquires, envelope.Completes, envelope.Fails, envelope.Returns, envelope.FailsTool:
		return true
	}
	return false
}

// IsQuestion reports whether the sender of a message about a task expects an answer.
func IsQuestion(m envelope.Message, about task.Task) bool {
	return m.WantsReply || m.Act == envelope.Asks || m.Act == envelope.Inquires || AwaitsReply(about) && m.From == about.Agent
}

// Wakes reports whether a message resumes a suspended task. Question says that the message
// is a question; only a question resumes a task that is held for its children.
func Wakes(m envelope.Message, question bool, t task.Task) bool {
	if !Suspended(t) || t.Agent == envelope.Mailboxd || t.Agent == m.From || !slices.Contains(m.To, t.Agent) {
		return false
	}
	return question || AwaitsReply(t)
}
