package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// An Event is one thing that happened. Data and texts are each a valid JSON value
// without a line break; Append checks only where they end.
type Event struct {
	N        uint64 // its number; the first event has 1 (see Options.After), and there is no gap
	At       time.Time
	Kind     string
	Task     string // the task's id; "" for none
	Revision uint64 // of the task; 0 for none
	Data     []byte // nil for none
	Bodies   []Body
	Place    Place // set by Append, and by what reads
}

// A Body is a text that belongs to an event and that retention can remove.
type Body struct {
	Name   string
	Text   []byte // nil when it was purged
	Digest Hash   // of the text; set by Append
}

// A Place is where the line of an event is. A purge moves lines within their
// segment.
type Place struct {
	N       uint64
	Segment int
	Offset  int64
	Length  int
}

// encodeEvent appends the line of an event to b, and returns where in b its bodies
// begin: before the end of the line, if it has none. It sets the digests.
func encodeEvent(b []byte, e *Event) (line []byte, bodies int, err error) {
	for i := range e.Bodies {
		body := &e.Bodies[i]
		if err := checkValue(body.Text); err != nil {
			return b, 0, fmt.Errorf("body %s %w", body.Name, err)
		}
		body.Digest = sha256.Sum256(body.Text)
	}
	if e.Data != nil {
		if err := checkValue(e.Data); err != nil {
			return b, 0, fmt.Errorf("data %w", err)
		}
	}
	return appendEvent(b, e)
}

// appendEvent is encodeEvent without checks of values. It leaves out the texts of
// bodies that were purged.
func appendEvent(b []byte, e *Event) (line []byte, bodies int, err error) {
	b = strconv.AppendUint(append(b, `{"n":`...), e.N, 10)
	if b, err = e.At.UTC().AppendText(append(b, `,"at":"`...)); err != nil {
		return b, 0, err
	}
	b = appendString(append(b, `","kind":`...), e.Kind, &err)
	if e.Task != "" {
		b = appendString(append(b, `,"task":`...), e.Task, &err)
	}
	if e.Revision > 0 {
		b = strconv.AppendUint(append(b, `,"revision":`...), e.Revision, 10)
	}
	if e.Data != nil {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	if len(e.Bodies) == 0 {
		return append(b, "}\n"...), len(b), err
	}
	begin := `,"sha256":{`
	for _, body := range e.Bodies {
		b = appendString(append(b, begin...), body.Name, &err)
		b = append(hex.AppendEncode(append(b, `:"`...), body.Digest[:]), '"')
		begin = ","
	}
	b = append(b, '}')
	bodies = len(b)
	if e.purged() {
		return append(b, "}\n"...), bodies, err
	}
	begin = `,"bodies":{`
	for _, body := range e.Bodies {
		b = appendString(append(b, begin...), body.Name, &err)
		b = append(append(b, ':'), body.Text...)
		begin = ","
	}
	return append(b, "}}\n"...), bodies, err
}

func appendString(b []byte, s string, failed *error) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		*failed = fmt.Errorf("%q: %w", s, err)
	}
	return b
}

// parseEvent reads a line of appendEvent. What it puts into e refers to the line; the
// room of e.Bodies is used again.
func parseEvent(line []byte, e *Event) (bodies int, ok bool) {
	p := parser{text: line}
	*e = Event{Bodies: e.Bodies[:0]}
	p.expect(`{"n":`)
	e.N = p.number()
	p.expect(`,"at":`)
	if at := p.skipString(); !p.bad {
		p.bad = e.At.UnmarshalJSON(at) != nil
	}
	p.expect(`,"kind":`)
	e.Kind = p.quoted()
	if p.follows(`,"task":`) {
		e.Task = p.quoted()
	}
	if p.follows(`,"revision":`) {
		e.Revision = p.number()
	}
	if p.follows(`,"data":`) {
		e.Data = p.value()
	}
	bodies = p.bodies(e)
	p.expect("}\n")
	return bodies, p.done()
}

// bodies reads the digests of bodies and the texts that are there, and returns where
// the texts begin.
func (p *parser) bodies(e *Event) (begin int) {
	if p.follows(`,"sha256":{`) {
		for more := true; more; more = p.follows(",") {
			name := p.quoted()
			p.expect(`:"`)
			e.Bodies = append(e.Bodies, Body{Name: name, Digest: p.hash()})
			p.expect(`"`)
		}
		p.expect("}")
	}
	begin = p.at
	if len(e.Bodies) == 0 || !p.follows(`,"bodies":{`) {
		return begin
	}
	for i := range e.Bodies {
		if i > 0 {
			p.expect(",")
		}
		p.bad = p.quoted() != e.Bodies[i].Name || p.bad
		p.expect(":")
		e.Bodies[i].Text = p.value()
	}
	p.expect("}")
	return begin
}

// wrongBody returns the name of a body whose text is not what its digest says.
func (e *Event) wrongBody() (name string, wrong bool) {
	for _, body := range e.Bodies {
		if body.Text != nil && sha256.Sum256(body.Text) != body.Digest {
			return body.Name, true
		}
	}
	return "", false
}

// purged reports whether the texts of the bodies are gone.
func (e *Event) purged() bool { return len(e.Bodies) > 0 && e.Bodies[0].Text == nil }

// sumLine is the digest of a line for the chain: of the line without its bodies.
func sumLine(line []byte, bodies int) Hash {
	if bodies == len(line)-len("}\n") {
		return sha256.Sum256(line)
	}
	sum := sha256.New()
	sum.Write(line[:bodies])
	sum.Write([]byte("}\n"))
	return Hash(sum.Sum(nil))
}
