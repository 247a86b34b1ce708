package store

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/retention"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// Agents is how the engine meets policy and agents: as functions that are
// handed in. All must be set, and safe for concurrent use.
type Agents struct {
	Judge   func(t envelope.Task, now time.Time) task.Verdict
	Run     func(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome
	Recover func(ctx context.Context, j task.Job) task.Outcome // what becomes of a run that an earlier daemon started
	Forget  func(dir string)                                   // what became of the run in a directory is durable: nobody else need remember it; nil: nobody does
	Refs    func(agent string) RefRule                         // how the files that its tasks name are judged
	HasDir  func(agent string) bool                            // whether its runs have directories
	Limit   func(agent string) int                             // how many runs an agent may have at once
	Reruns  func(agent string) bool                            // whether an id that was executed may be sent again with other content
	Retries func(agent string) int                             // how many further attempts a run that asks for one gets
	Backoff func(agent string) time.Duration                   // the pause before the first of them; it doubles
	Known   func(agent string) bool                            // whether there is such an agent: it may be paused, and its requests are a run's
	Mode    func(envelope.Control) envelope.Mode               // how strictly a control is held that is ours: lineage

	// Inbox is where an agent fetches its tasks; Answer makes the outcome of a
	// job from what somebody said who fetched it, or says why that is no answer.
	Inbox  func(agent string) Inbox
	Answer func(j task.Job, said []byte, exit task.Exit) (task.Outcome, error)

	ApprovalTTL func() time.Duration // how long a question to a person, or what they said, stands; 0, or nil: for ever

	Protocol Protocol // how agents are spoken with, and speak with each other
}

// Options are the operator's choices.
type Options struct {
	Workers           int           // runs at once, over all agents
	PerRequester      int           // runs at once of one requester; 0: no limit
	Depth             int           // how many tasks may be above one that an agent asked for; 0: no agent may ask
	Children          int           // how many tasks the run of one may ask for
	Queue             int           // queued tasks at which intake pauses
	QueuePerRequester int           // tasks of one requester that are not over, at which they are refused more; 0: no limit
	Grace             time.Duration // how long runs may go on once the context of Serve ends
	Detach            bool          // or leave them to their keeper, at once
	Retention         retention.Policy
	Reading           envelope.Reading
	RefRoots          []string // where files named by tasks may lie, beside the mailbox
	Tail              mailbox.TailOptions
	Log               zerolog.Logger // the zero value is silent
}

// An Inbox is where an agent fetches its tasks (AINL-21). The zero value is that
// of an agent that is run.
type Inbox struct {
	File  string        // below the mailbox, with slashes; "": the agent is run
	Lease time.Duration // how long who claims a task has it, unless they renew that
}

// A RefRule says how strictly the files that a task names are judged. The zero
// value refuses what leads outside the roots, and warns of what is missing.
type RefRule struct {
	Mode     envelope.Mode // Warn only says what Enforce refuses; Off does not look
	Required bool          // what is missing refuses the task too
}

// Everyone, in the place of an agent's id, means every agent.
const Everyone = schedule.AllAgents

// ErrShutdown is the cause with which runs are cut short when the daemon stops.
var ErrShutdown = errors.New("the daemon is shutting down")
