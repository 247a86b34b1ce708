package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Decision is what came of asking a person. The zero value is Undecided.
type Decision string

// The decisions.
const (
	Undecided Decision = ""         // no decision yet
	Approved  Decision = "approved" // go on
	Denied    Decision = "denied"   // do not
	Expired   Decision = "expired"  // nobody decided in time, or the approval was not used in time
	Void      Decision = "void"     // it was about something else than what would happen now, or is not needed
)

// A Consent is one approval that was asked for, and what came of it. Times are
// in UTC, to the microsecond.
type Consent struct {
	Seq      int64             // the ledger gives it
	Task     int64             // the task's Seq
	Stage    envelope.Approval // ApprovalPre: before it starts; ApprovalPost: before its result is shown
	Digest   string            // names what exactly it is about
	Plan     jsontext.Value    // what that is, an object; nil after a run, where it is the result
	Approver string            // the only one who may decide; "": every approver
	Asked    time.Time
	Expires  time.Time // zero: never by itself

	Decision Decision
	Decided  time.Time // zero while it is open
	Decider  string    // the name with which a person decided; "" when nobody did
	Note     string    // their reason, or the daemon's
}
