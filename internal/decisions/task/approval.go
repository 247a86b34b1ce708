package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Decision is the state of an approval. The zero value is Undecided.
type Decision string

// The decisions.
const (
	Undecided Decision = "" // no decision yet
	Approved  Decision = "approved"
	Denied    Decision = "denied"
	Expired   Decision = "expired" // no decision in time, or the approval was not used in time
	Void      Decision = "void"    // the content has changed, or the approval is no longer needed
)

// A Consent is one approval and its decision. Times are in UTC, to the microsecond.
type Consent struct {
	Seq      int64             // set by the ledger
	Task     int64             // the task's Seq
	Stage    envelope.Approval // ApprovalPre: before it starts; ApprovalPost: before its result is shown; ApprovalTool: before a call of a tool
	Digest   string            // of the content to approve
	Plan     jsontext.Value    // that content, an object: the plan of a start, or a call; nil after a run: the content is the result
	Approver string            // the only permitted approver; "": any
	Asked    time.Time
	Expires  time.Time // zero: never

	Decision Decision
	Decided  time.Time // zero while it is open
	Decider  string    // the name of the approver; "" for none
	Note     string    // the approver's reason, or the daemon's
	Proof    Proof     // of the decision; zero for none
}

// DeniesTask reports whether a person denied the start or the answer of the task, and not only one of
// its calls.
func (c Consent) DeniesTask() bool { return c.Decision == Denied && c.Stage != envelope.ApprovalTool }
