package dialect

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// The performatives (CLOWL-07).
var performatives = []string{"REQ", "INF", "ACK", "ERR", "DLGT", "DONE", "CNCL", "QRY", "PROG", "CAPS"}

// performative returns p; "" if it is none of the ten.
func (r *clowlReading) performative() string {
	value := r.required("p")
	if value == nil {
		return ""
	}
	p := r.prose("p", value)
	if value.Kind() == '"' && !slices.Contains(performatives, p) {
		r.refuse("p", "must be one of "+strings.Join(performatives, ", "))
		return ""
	}
	return p
}

// time reads ts, in whole seconds since 1970 (CLOWL-04).
func (r *clowlReading) time(value jsontext.Value) {
	const latest = 1e11 // in seconds; larger numbers are milliseconds
	if value == nil {
		return
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	switch {
	case value.Kind() != '0' || err != nil || seconds < 0 || seconds != float64(int64(seconds)):
		r.refuse("ts", "must be a whole number of seconds since 1970")
	case seconds > latest:
		r.note(envelope.ValidationFailed, "ts", "must be in seconds, not in milliseconds")
	default:
		r.message.Time = time.Unix(int64(seconds), 0).UTC()
	}
}

// body reads the type and the data of a message (CLOWL-11, CLOWL-12).
func (r *clowlReading) body() {
	body := newFields(r.required("body"), "body.", &r.findings)
	if body.members == nil {
		return
	}
	m := &r.message
	m.Type = body.name("t", body.required("t"))
	if d := body.required("d"); d != nil {
		if r.d = newFields(d, "body.d.", &r.findings); r.d.members != nil {
			m.Data = d
		}
	}
	r.keep("body", body)
}

// context reads ctx (CLOWL-13 to CLOWL-17). It does not look for the content.
func (r *clowlReading) context() {
	value := r.member("ctx")
	if value == nil {
		return
	}
	ctx := newFields(value, "ctx.", &r.findings)
	if ctx.members == nil {
		return
	}
	c := &r.message.Context
	if text, _ := textOf(ctx.member("ref")); text != "" || ctx.member("ref").Kind() != '"' {
		c.Ref = ctx.name("ref", ctx.member("ref"))
	}
	c.Inline = ctx.prose("inline", ctx.member("inline"))
	if units(c.Inline) > mostInline {
		ctx.note(envelope.ContextTooLarge, "inline", "is longer than 2000 characters")
	}
	sum := ctx.prose("hash", ctx.member("hash"))
	switch {
	case sum == "" && ctx.member("hash").Kind() != '"':
	case !isSum(sum):
		ctx.refuse("hash", "must be the SHA-256 of what is at ref, in 64 lower-case hexadecimal digits")
	case c.Ref == "":
		ctx.note("", "hash", "is of nothing without a ref: ignored")
	default:
		c.Hash = sum
	}
	r.keep("ctx", ctx)
}

func isSum(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32 && text == strings.ToLower(text)
}

// keep keeps the unknown members of the message or, under its name, of an object within it
// (CLOWL-12, CLOWL-20).
func (r *clowlReading) keep(within string, f fields) {
	m := &r.message
	switch unknown := f.unknown(); {
	case unknown == nil:
	case within != "":
		m.Extra = with(m.Extra, within, unknown)
	default:
		all := membersOf(unknown)
		maps.Copy(all, membersOf(m.Extra))
		m.Extra = object(all)
	}
}

// ask makes the request of a message. CLowl has no limits, so they are those of AINL, under the
// same rules.
func (r *clowlReading) ask() {
	m := &r.message
	if !asks(m.Act) {
		return
	}
	m.Request = envelope.Task{
		Raw: m.Raw, Hash: m.Hash, ID: m.Task, Requester: m.From, Type: m.Type, Description: m.Text, Payload: m.Data,
	}
	if len(m.To) == 1 && m.To[0] != envelope.Everybody {
		m.Request.Agent = m.To[0]
	}
	if !r.findings.Refused() {
		r.limit()
	}
}
