package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Verdict is the decision of policy about a task. The zero value refuses. A refusal has
// no terms except levels.
type Verdict struct {
	Admit    bool
	Hold     []Reason          // admitted, but held for these reasons
	Until    time.Time         // when a held task is judged again; zero: after a change
	Waits    []Wait            // what wakes it before, for reasons of Hold
	Findings envelope.Findings // refusals and warnings
	Digest   string            // of the content to approve; not set by policy
	Plan     jsontext.Value    // that content, an object
	Routing  jsontext.Value    // the decision that no agent can do the task, an object; nil: none was made
	Terms                      // the terms of the admission
}

// A Job is one attempt at one revision of a task.
type Job struct {
	Task     envelope.Task
	Revision int
	Attempt  int    // 1 for the first
	Dir      string // the run directory: absolute, existing, empty before the run; "" for a worker
	Cwd      string // the directory of the process; "": as the task and the configuration say
	RunID    string
	At       Assignment // the runner that gets it; zero: this machine
	After    string     // the run in whose worktree this one goes on, for a runner; "": none, or that of the attempt before
	Digest   string     // of the approved content; "" without approval
	Lease    string     // a file that says when the run must have ended; see runner.Spec; "": none
	Rebooted bool       // the machine may have gone down since the run began, and lost what the run wrote

	Plan jsontext.Value // that content, an object; nil without approval

	// Allowance is the budget of the run when it begins, or AINL's request if budgets are
	// not enforced. Meter, unless nil, receives the total spending of the run, during the
	// run and at its end. If it returns an error, the run is ended; the error text is for
	// the requester.
	Allowance envelope.Budget
	Meter     func(envelope.Cost) error

	// Conversation has the messages to and from the agent about the task and its children,
	// the oldest first. It is empty in the first attempt at a task without messages.
	// Report, unless nil, receives the agent's progress messages during the run.
	Conversation []envelope.Message
	Report       func(envelope.Message)

	// Ask, unless nil, has a person decide about a call, and returns the decision. It asks once:
	// later uses with the same content return what was decided since. A call that was made
	// already is recorded as one without a question.
	Ask func(c Call, made bool) (CallDecision, error)

	// Used, unless nil, records what the tool broker of the run did.
	Used func(Kind, ToolUse) error

	// Reach, unless nil, records whether the runner of the run can be reached, and when the run counts as
	// lost otherwise.
	Reach func(reachable bool, until time.Time) error
	Terms
}

// An Outcome is the result of a Job. Its Result is complete; a nil Cost there means that
// the cost is unknown.
type Outcome struct {
	Result envelope.Result
	Exit   Exit // of the process; Code is -1 without one
	Retry  bool // allow another attempt; an interrupted one does not count

	// Messages are the agent's messages beside its answer, in order: reports, questions,
	// delegations.
	Messages []envelope.Message

	// Hold, unless "", is the reason why the task waits before its next run: a person's
	// login, the end of a ProviderLimit, a Reply, or the end of its Children. The Result
	// explains it, and the attempt does not count. HoldUntil is when the limit ends, if the
	// agent named a time; HoldShort says that it soon ends, as an overload does.
	Hold      Reason
	HoldUntil time.Time
	HoldShort bool

	// Unanswered, unless its Status is "", becomes the result if the agent's question gets
	// no reply in time. It contains the question. Hold is Reply then.
	Unanswered envelope.Result

	// Patch is the SHA-256 of the kept work of the run in its worktree; "" for none.
	Patch string

	// Published are the files of the run that its result names, and that are artifacts now.
	Published []Artifact

	// RefusedHosts are the hosts that the gate of the run's sandbox refused.
	RefusedHosts []RefusedHost

	// Void says that nothing was started because the machine lacks a resource, such as disk
	// space or open files. All other fields are unset, and the job can be started again.
	Void error

	// Unread says that the run has ended, but its output could not be read for a reason
	// outside the agent. Only Exit counts beside it; it is zero if it could not be read.
	// The answer is read again later.
	Unread error

	// Detached says that the run continues under its keeper without the daemon. All other
	// fields are unset.
	Detached bool
}

// An Artifact is a file that a run published.
type Artifact struct {
	Digest string // its SHA-256
	Name   string // in the run directory
	Size   int64
	Time   time.Time
}

// A RefusedHost is a host that the network list of a sandbox doesn't have.
type RefusedHost struct {
	Host string `json:"host"`
	Why  string `json:"why"`
	For  string `json:"for,omitempty"` // what the program uses it for without need, such as usage statistics; "": it may need it
}

// NeededHosts returns the refused hosts that the agent may have needed.
func (o Outcome) NeededHosts() (needed []RefusedHost) {
	for _, host := range o.RefusedHosts {
		if host.For == "" {
			needed = append(needed, host)
		}
	}
	return needed
}
