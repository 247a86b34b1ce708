package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// An Event is one entry of the history. Events are only appended; Seq and not Time gives
// their order.
type Event struct {
	Seq      int64     // set by the ledger
	Time     time.Time // to the microsecond, UTC
	Kind     Kind
	Task     envelope.ID    // "" for none
	Revision int            // of the task
	Of       int64          // the Seq of that revision, to save a lookup; 0: unknown
	Data     jsontext.Value // a JSON object; nil for an empty one
}

// The names of digests in the data of events: hexadecimal SHA-256.
const (
	ResultDigest = "result_sha256" // of the result that the event sets
	PatchDigest  = "patch_sha256"  // of the work of the run that the event ends, or that a person decided about
)
