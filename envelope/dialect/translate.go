package dialect

import (
	"bytes"
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Translate writes the request of a task in a dialect, as one line: its own bytes if it came in
// that dialect.
func Translate(t envelope.Task, to envelope.Dialect) []byte {
	to = cmp.Or(to, envelope.AINL)
	from := dialectOf(t)
	if from == to {
		return addressed(t)
	}
	m, findings := codecs[from].Decode(t.Raw, envelope.Legacy)
	if findings.Refused() { // it was accepted once: use what was read then
		m = asked(t)
	}
	if t.Agent != "" && (len(m.To) == 0 || m.Clutch.Routed()) {
		m.To = []string{t.Agent} // the router has chosen it
	}
	said, _ := codecs[to].Encode(m)
	return said
}

// addressed returns the line of a request in Clutch for the agent that the router chose: it is
// addressed to that agent, and has no signature, which covers the address (CLUTCH-90). Any
// other line stays as it is.
func addressed(t envelope.Task) []byte {
	if !t.Clutch.Routed() || t.Agent == "" || t.Agent == envelope.Everybody {
		return t.Raw
	}
	members := membersOf(t.Raw)
	if members == nil {
		return t.Raw
	}
	members["to"] = array([]jsontext.Value{senderValue(t.Agent, "")})
	if security := membersOf(members["security"]); security["auth"] != nil {
		delete(security, "auth")
		members["security"] = object(security)
	}
	return line(object(members))
}

// dialectOf returns the dialect in which a task was requested. A task with a role and without
// the name of another dialect's mark is AINL's, which is found without reading it again.
func dialectOf(t envelope.Task) envelope.Dialect {
	for _, mark := range []string{"clowl", "clutch/", `\u`} {
		if t.Role == "" || bytes.Contains(t.Raw, []byte(mark)) {
			return envelope.MarkedAs(t.Raw)
		}
	}
	return envelope.AINL
}

// IsStrict reports whether mailboxd would write the same line for the message.
func IsStrict(m envelope.Message) bool {
	line, _ := codecs[m.Dialect].Encode(m)
	hash, _ := envelope.ContentHash(line)
	return hash == m.Hash
}
