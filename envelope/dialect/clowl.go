package dialect

import (
	"bytes"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// clowlCodec is CLowl v0.2. Each of its messages has one of ten performatives.
type clowlCodec struct{}

// clowlVersion is the only supported version of CLowl (CLOWL-02).
const clowlVersion = "0.2"

const (
	mostIDUnits = 128  // of an id, in UTF-16 units, as the strictest reader counts (F12)
	mostInline  = 2000 // UTF-16 units of ctx.inline, as the strictest reader counts (CLOWL-15, F12)
)

// units returns the length of a text in UTF-16 units.
func units(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// A clowlReading is a Message being read.
type clowlReading struct {
	fields
	message  envelope.Message
	findings envelope.Findings
	d        fields // body.d, without members if it is no object
}

func (clowlCodec) Decode(raw []byte, _ envelope.Reading) (envelope.Message, envelope.Findings) {
	r := openCLowl(raw)
	if r.members != nil {
		r.head()
		r.body()
		r.context()
		r.message.Deterministic = r.flag("det")
		if r.has("auth") && membersOf(raw)["auth"].Kind() != '"' { // a redacted secret is a string
			r.refuse("auth", "must be a string")
		}
		r.act()
		r.keep("", r.fields)
		r.ask()
	}
	return r.message, r.findings
}

// openCLowl reads an object. The reading has no members if no part of the object is reliable;
// its message then has the fields that an answer to the sender needs.
func openCLowl(raw []byte) *clowlReading {
	r := new(clowlReading)
	m := &r.message
	whole := bytes.Trim(raw, space)
	m.Dialect = envelope.CLowl
	m.Raw, m.Secret = strike(whole, "auth", redacted)
	content, _ := strike(whole, "auth", "null")
	if m.Hash, r.findings = envelope.ContentHash(content); r.findings.Refused() {
		m.ID, m.From, m.Thread = envelope.Scrap(whole, "mid"), envelope.ScrapString(whole, "from"), envelope.Scrap(whole, "cid")
		return r
	}
	r.fields = newFields(m.Raw, "", &r.findings)
	return r
}

// head reads the performative and the parties (CLOWL-02 to CLOWL-10).
func (r *clowlReading) head() {
	m := &r.message
	r.version()
	m.ID = r.id("mid", r.required("mid"))
	m.Trace, m.Cause = r.id("tid", r.member("tid")), r.id("pid", r.member("pid"))
	m.Thread = r.id("cid", r.required("cid"))
	if m.From = r.id("from", r.required("from")); m.From == envelope.Everybody {
		r.refuse("from", `must not be "*"`)
	}
	r.recipients(r.required("to"))
	r.time(r.required("ts"))
}

func (r *clowlReading) version() {
	said, is := textOf(r.member("clowl"))
	older := r.has("cl")
	switch {
	case is && said == clowlVersion:
	case is || older && !r.has("clowl"):
		r.note(envelope.UnsupportedVersion, "clowl", `is another version, only "0.2" is supported`)
	case !r.has("clowl"):
		r.required("clowl")
	default:
		r.refuse("clowl", `must be the string "0.2"`)
	}
}

// id reads the name of a message, a conversation or a participant.
func (r *clowlReading) id(field string, value jsontext.Value) string {
	name := r.name(field, value)
	if units(name) > mostIDUnits {
		r.refuse(field, "is longer than 128 characters")
		return ""
	}
	return name
}

// recipients reads to: one, several, or all (CLOWL-09).
func (r *clowlReading) recipients(value jsontext.Value) {
	m := &r.message
	if value == nil {
		return
	}
	if value.Kind() == '"' {
		if name := r.id("to", value); name != "" {
			m.To = []string{name}
		}
		return
	}
	items := r.list("to", value)
	if len(items) == 0 && value.Kind() == '[' {
		r.refuse("to", "must not be empty")
	}
	seen := map[string]bool{}
	for i, item := range items {
		name := r.id(indexed("to", i), item)
		switch {
		case name == envelope.Everybody:
			r.note(envelope.ValidationFailed, indexed("to", i), `must not be "*" among others`)
		case name != "" && !seen[name]:
			m.To, seen[name] = append(m.To, name), true
		}
	}
}
