package store

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/retention"
	"mailboxd/mailbox"
)

// Agents gives the engine policy and the agents, as functions. All are required unless their
// comment allows nil, and safe for concurrent use.
type Agents struct {
	Judge   func(t envelope.Task, now time.Time) task.Verdict
	Run     func(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome
	Recover func(ctx context.Context, j task.Job) task.Outcome // the outcome of a run that an earlier daemon started
	Forget  func(dir string)                                   // drops what is remembered of the run in a directory: its outcome is durable; nil: nothing is remembered
	Refs    func(agent string) RefRule                         // how the files that its tasks name are judged
	HasDir  func(agent string) bool                            // whether its runs have directories
	Limit   func(agent string) int                             // how many runs an agent may have at once
	Reruns  func(agent string) bool                            // whether an id that was executed may be sent again with other content
	Retries func(agent string) int                             // how many further attempts a run that asks for one gets
	Backoff func(agent string) time.Duration                   // the pause before the first of them; it doubles
	Known   func(agent string) bool                            // whether the agent exists: it may be paused, and its requests belong to its runs
	Mode    func(envelope.Control) envelope.Mode               // how strictly a control of the engine is enforced: lineage

	// IsRemote reports whether the runs of an agent are on runners, and Runners gives them to these. nil: no run is.
	IsRemote func(agent string) bool
	Runners  *Runners

	// Inbox is where an agent fetches its tasks. Answer makes the outcome of a job from a
	// submitted answer, or says why the bytes are no answer.
	Inbox  func(agent string) Inbox
	Answer func(j task.Job, answer []byte, exit task.Exit) (task.Outcome, error)

	// Prove verifies the proof of a decision about a task, and returns what it shows. The error
	// says why the decision doesn't count, for people. nil: decisions need no proof.
	Prove func(row task.Task, c task.Consent) (task.ProofLevel, error)

	// WhyNobody says why no approver may decide about a task, or its only permitted one; "" if one
	// may. nil: one may.
	WhyNobody func(row task.Task, only string) string

	ApprovalTTL func() time.Duration // how long a question to a person and its decision stay valid; 0 or nil: without limit

	// Candidates returns what a task needs of its agent, and all agents with what the
	// configuration says about them. Ok is false if the configuration forbids to choose. nil:
	// a task without an agent is refused.
	Candidates func(t envelope.Task) (c Candidates, ok bool)

	Protocol Protocol // the dialects and the rules of the agents' messages
}

// Runners give runs to programs on other machines. Agents.Run and Agents.Recover wait for these runs.
type Runners struct {
	Free    func(agent string) bool                                         // a runner has room for a run
	Take    func(agent string) (grant any)                                  // takes that room; nil: there is none any more
	Assign  func(grant any, seq int64, j task.Job) (task.Assignment, error) // which run gets the room; schedule.ErrNoRoom, *schedule.UnfitError: none
	Held    func(seq int64, held bool) (room bool)                          // a task that Assign refused is held, or isn't any more; room: for it
	Drop    func(grant any)                                                 // gives back the room of a run not sent; nothing for one that was
	Settled func(at task.Assignment)                                        // the end of the run is durable
}

// Candidates are the agents among which one is chosen for a task.
type Candidates struct {
	Need    route.Need
	All     []route.Candidate
	Rules   string        // the digest of the configuration
	Timeout time.Duration // how long the task waits for one of them
}

// Options are the operator's choices.
type Options struct {
	Workers           int                 // runs at once, over all agents
	PerRequester      int                 // runs at once of one requester; 0: no limit
	Depth             int                 // ancestors of a task that an agent requested; 0: agents may request no tasks
	Children          int                 // tasks that the run of one task may request
	Queue             int                 // queued tasks at which intake pauses
	QueuePerRequester int                 // open tasks of one requester at which further ones are refused; 0: no limit
	MaxPriority       int                 // the highest priority that a request can have
	LimitPause        schedule.LimitPause // after a provider did not serve an agent
	Grace             time.Duration       // how long runs may continue after the context of Serve ends
	Detach            bool                // leave runs to their keeper at once, without the grace period
	Retention         retention.Policy
	Reading           envelope.Reading
	RefRoots          []string // directories of the files that tasks may name, besides the mailbox
	Tail              mailbox.TailOptions
	Log               zerolog.Logger // the zero value is silent
}

// An Inbox is where an agent fetches its tasks (AINL-21). The zero value is the inbox of an
// agent that the daemon runs.
type Inbox struct {
	File  string        // below the mailbox, with slashes; "": the daemon runs the agent
	Lease time.Duration // how long a claim lasts without a renewal
}

// A RefRule says how strictly the files that a task names are judged. The zero value refuses
// paths outside the roots, and warns about missing files.
type RefRule struct {
	Mode     envelope.Mode // Warn only reports what Enforce refuses; Off skips the check
	Required bool          // a missing file refuses the task too
}

// Everyone, in place of an agent's id, means all agents.
const Everyone = schedule.AllAgents

// ErrShutdown is the cause of runs that end because the daemon stops.
var ErrShutdown = errors.New("the daemon is shutting down")
