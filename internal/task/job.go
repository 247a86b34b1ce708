package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Verdict says what may happen to a task. The zero value refuses. A verdict that
// refuses has no terms but the levels at which its controls were held.
type Verdict struct {
	Admit    bool
	Hold     []Reason          // admitted, but not before these are gone
	Until    time.Time         // when a held task is judged again; zero: when somebody acts
	Findings envelope.Findings // why it is refused, and warnings
	Digest   string            // names what a person would agree to; policy does not set it
	Plan     jsontext.Value    // what that is, an object
	Terms                      // what it is admitted with
}

// A Job is one attempt at one revision of a task.
type Job struct {
	Task     envelope.Task
	Revision int
	Attempt  int    // 1 is the first
	Dir      string // the run directory: absolute, existing, empty before the run; "" for a worker
	RunID    string
	Digest   string // what a person agreed to; "" when nobody was asked

	// Allowance is what the run may spend as it begins, AINL's request where
	// nothing is enforced. Meter, unless nil, takes what the run has spent in all
	// so far, while it runs and when it is over. An error of Meter says that this is
	// too much, in words for the requester; the run is ended then.
	Allowance envelope.Budget
	Meter     func(envelope.Cost) error

	// Conversation has the messages to and from the agent about the task and the
	// tasks that belong to it, the oldest first. It is empty for the first attempt
	// at a task without messages. Report, unless nil, takes the agent's messages
	// about its progress while it runs.
	Conversation []envelope.Message
	Report       func(envelope.Message)
	Terms
}

// An Outcome is what became of a Job. Its Result is complete; a Cost of nil there
// means that the cost is not known.
type Outcome struct {
	Result envelope.Result
	Exit   Exit // of the process; Code is -1 when there was none
	Retry  bool // another attempt may be made; an interrupted one does not count

	// Said has the agent's messages beside its answer, in order: reports, questions,
	// delegations.
	Said []envelope.Message

	// Hold, unless "", is what the task waits for before it runs again: a person's
	// login, without which nothing was done; a Reply; the end of its Children. The
	// Result says why, and the attempt does not count.
	Hold Reason

	// Unanswered, unless its Status is "", becomes the answer if nobody replies in
	// time to the agent's question: it is that question. Hold is Reply then.
	Unanswered envelope.Result

	// Void says that nothing was started, because the machine has too little of
	// something, such as disk or open files. Nothing else here counts, and the job
	// can begin afresh.
	Void error

	// Unread says that the run is over, but a part of what it left could not be
	// read, and the agent is not the reason. Nothing else here counts but Exit,
	// which is zero when it could not be read. The answer is read again later.
	Unread error

	// Detached says that the daemon left the run to its keeper, and the run goes on.
	// Nothing else here counts.
	Detached bool
}
