// Package dialect reads and writes what programs say to each other in the
// languages that agents speak. A line becomes a message or a reason why not,
// and nothing that it says is lost on the way.
package dialect

import (
	"github.com/google/uuid"

	"mailboxd/envelope"
)

// A Codec reads and writes one dialect. Codecs have no state and may be used
// concurrently.
type Codec interface {
	// Decode reads one message as it is in a mailbox: all that its dialect
	// requires is there. When the findings refuse it, the Message still has Raw, Hash
	// and whatever could be read, so that its sender can be told. A Message that asks
	// for something has its Request.
	Decode(raw []byte, how envelope.Reading) (envelope.Message, envelope.Findings)

	// Hear reads one object that an agent printed: what a runtime has to supply
	// (ids, times, traces, who says it to whom) may be missing, and is taken from the
	// task that it works on (CLOWL-38). What an agent says about its own task becomes
	// what it is to its requester: an answer, say (CAP-33).
	Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings)

	// Encode says a message in the dialect, as one line without its end, in the
	// strictest form that every reader of the dialect accepts. What the dialect has no
	// words of its own for is named in lost, as docs/dialects.md calls it; that page
	// says where it is kept, if anywhere.
	Encode(m envelope.Message) (line []byte, lost []string)
}

// codecs are all that we speak.
var codecs = map[envelope.Dialect]Codec{
	envelope.AINL:  ainlCodec{},
	envelope.CLowl: clowlCodec{},
	envelope.CAP:   capCodec{},

	envelope.Clutch: clutchCodec{},
}

// Of returns the codec of a dialect. ok is false when we do not speak it.
func Of(d envelope.Dialect) (c Codec, ok bool) {
	c, ok = codecs[d]
	return c, ok
}

// NewID returns a name for a message that nobody else gives: a UUID of version
// 7, which begins with the time (CLOWL-03).
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
