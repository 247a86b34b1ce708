package dialect

import (
	"bytes"
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Retell says the request of a task in a dialect, as one line: its own bytes
// where it was asked for in that one.
func Retell(t envelope.Task, to envelope.Dialect) []byte {
	to = cmp.Or(to, envelope.AINL)
	from := dialectOf(t)
	if from == to {
		return addressed(t)
	}
	m, findings := codecs[from].Decode(t.Raw, envelope.Legacy)
	if findings.Refused() { // it was taken once: say what was understood then
		m = asked(t)
	}
	if t.Agent != "" && (len(m.To) == 0 || m.Clutch.Routed()) {
		m.To = []string{t.Agent} // the router has chosen it
	}
	said, _ := codecs[to].Encode(m)
	return said
}

// addressed returns the line of a request in Clutch as the agent gets it that was chosen for it: it
// is addressed to that agent, and has no signature, which covers the address (CLUTCH-90). Any other
// line stays as it is.
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

// dialectOf is the dialect in which a task was asked for. One that has a role and
// not so much as the name of another dialect's mark in it is AINL's, which is
// found without reading it again.
func dialectOf(t envelope.Task) envelope.Dialect {
	for _, mark := range []string{"clowl", "clutch/", `\u`} {
		if t.Role == "" || bytes.Contains(t.Raw, []byte(mark)) {
			return envelope.MarkedAs(t.Raw)
		}
	}
	return envelope.AINL
}

// IsStrict reports whether the line of a message equals the line that mailboxd would write.
func IsStrict(m envelope.Message) bool {
	line, _ := codecs[m.Dialect].Encode(m)
	hash, _ := envelope.ContentHash(line)
	return hash == m.Hash
}
