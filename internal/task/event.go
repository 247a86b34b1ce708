package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// An Event is one thing that happened. Events are only ever added, and their
// Seq, not their Time, says which came first.
type Event struct {
	Seq      int64     // the ledger gives it
	Time     time.Time // to the microsecond, UTC
	Kind     Kind
	Task     envelope.ID    // which task it is about; "" for none
	Revision int            // and which revision of it
	Of       int64          // that revision's Seq, so that the ledger need not look it up; 0: not known
	Data     jsontext.Value // a JSON object; nil for an empty one
}
