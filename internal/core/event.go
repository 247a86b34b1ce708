package core

import "mailboxd/internal/task"

// An Event is one thing that happened to a task.
type Event struct {
	Task   int64     // its Seq; New for the task that an Added event before it adds
	Kind   task.Kind // what readers of events are shown; "" for nothing
	Data   any       // what they are shown about it: an object in JSON; nil: nothing
	Change Change    // what is different from now on; nil: nothing
}

// New stands for the Seq of a task that the same decision adds: Seqs are given when
// events are made durable.
const New = -1

// A Change is what an event changes. The types of this file are all there are.
type Change interface{ apply(*State, *Task) }

type (
	// Added is a new revision, whose Seq is still to be given.
	Added struct{ Task task.Task }

	// Moved takes a task to another state, or keeps it there for other reasons.
	// Reasons and Until are exactly those of the change; any other zero field leaves
	// what was there.
	Moved struct {
		From        task.State
		FromAttempt int
		task.Change
	}

	// Asked is a question to an approver.
	Asked struct{ Consent task.Consent }

	// Concluded ends an approval that was open or given.
	Concluded struct {
		From    task.Decision
		Consent task.Consent
	}

	// RunIntended is a run that is about to begin.
	RunIntended struct{ Run task.Run }

	// RunEnded is a run that is over, with how it ended.
	RunEnded struct{ Run task.Run }

	// RunVoid takes back an intent of which nothing was started.
	RunVoid struct{ Run task.RunName }

	// RunReleased ends the reservation of a run that never began.
	RunReleased struct{ Run task.RunName }

	// Settled says that no result file and no callback is left to be made.
	Settled struct{}

	// Offered puts a task before an agent that fetches its tasks.
	Offered struct{}

	// Leased gives a waiting task to the program that has a token.
	Leased struct{ Token string }
)
