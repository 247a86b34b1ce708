package core

import "mailboxd/internal/decisions/task"

// An Event is one change or record of a task.
type Event struct {
	Task   int64     // the Seq of the task; New for the task of an Added event before it
	Kind   task.Kind // the public kind; "" for an internal event
	Data   any       // the public data, an object in JSON; nil: none
	Change Change    // the change of the state; nil: none
}

// New stands for the Seq of a task that the same decision adds. Number replaces it when the
// events become durable.
const New = -1

// A Change is the change of state that an event makes. This file has all its types.
type Change interface{ apply(*State, *Task) }

type (
	// Added is a new revision without a Seq.
	Added struct {
		Task  task.Task
		Waits []task.Wait // what wakes it, if it is held
	}

	// Moved changes the state of a task, or its reasons in the same state. Reasons, Until
	// and Due replace those of the task; any other zero field keeps the task's value.
	Moved struct {
		From        task.State
		FromAttempt int
		task.Change
	}

	// Asked is a question to an approver.
	Asked struct{ Consent task.Consent }

	// Concluded ends an open or given approval.
	Concluded struct {
		From    task.Decision
		Consent task.Consent
	}

	// RunIntended is a run that is about to begin.
	RunIntended struct{ Run task.Run }

	// RunEnded is a run that is over, with how it ended.
	RunEnded struct{ Run task.Run }

	// RunVoid removes the intent of a run that never started.
	RunVoid struct{ Run task.RunName }

	// RunReleased ends the reservation of a run that never began.
	RunReleased struct{ Run task.RunName }

	// Settled says that the result file is in place and all callbacks are made.
	Settled struct{}

	// Offered makes a task available to an agent that fetches its tasks.
	Offered struct{}

	// Leased gives a waiting task to the program with a token.
	Leased struct{ Token string }
)
