// Package dialect reads and writes the dialects of agents. A line becomes a message or the
// reason of its refusal; no part of its content is lost.
package dialect

import (
	"strings"

	"github.com/google/uuid"

	"mailboxd/envelope"
)

// A Codec reads and writes one dialect. Codecs have no state and may be used
// concurrently.
type Codec interface {
	// Decode reads one message of a mailbox: it has all members that its dialect requires. When
	// the findings refuse it, the Message still has Raw, Hash and every field that could be
	// read, so that its sender gets an answer. A Message that asks for a task has its Request.
	Decode(raw []byte, how envelope.Reading) (envelope.Message, envelope.Findings)

	// Receive reads one object that an agent printed. Members that the runtime supplies (ids,
	// times, traces, sender, recipient) may be missing, and are taken from the agent's task
	// (CLOWL-38). A message about the agent's own task gets its meaning for the requester: an
	// answer, for example (CAP-33).
	Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings)

	// Encode writes a message in the dialect, as one line without its end, in the strictest
	// form that every reader of the dialect accepts. lost names the parts that the dialect has
	// no words of its own for, as docs/dialects.md calls them; that page lists where they are
	// kept, if anywhere.
	Encode(m envelope.Message) (line []byte, lost []string)
}

// codecs are the codecs of all dialects.
var codecs = map[envelope.Dialect]Codec{
	envelope.AINL:  ainlCodec{},
	envelope.CLowl: clowlCodec{},
	envelope.CAP:   capCodec{},

	envelope.Clutch: clutchCodec{},
}

// Versions returns the versions of the dialects that mailboxd writes. It reads any 1.x of AINL. CAP has no
// versions.
func Versions() map[envelope.Dialect]string {
	return map[envelope.Dialect]string{
		envelope.AINL:   envelope.SchemaVersion,
		envelope.CLowl:  clowlVersion,
		envelope.CAP:    "unversioned",
		envelope.Clutch: strings.TrimPrefix(clutchVersion, "clutch/"),
	}
}

// Of returns the codec of a dialect. ok is false for an unknown dialect.
func Of(d envelope.Dialect) (c Codec, ok bool) {
	c, ok = codecs[d]
	return c, ok
}

// NewID returns a unique name for a message: a UUID of version 7, which begins with the time
// (CLOWL-03).
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
