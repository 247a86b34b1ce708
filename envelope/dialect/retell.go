package dialect

import (
	"cmp"

	"mailboxd/envelope"
)

// Retell says the request of a task in a dialect, as one line: its own bytes
// where it was asked for in that one.
func Retell(t envelope.Task, to envelope.Dialect) []byte {
	to = cmp.Or(to, envelope.AINL)
	from := envelope.AINL
	if t.Role == "" { // only AINL has roles, so no other request is looked at
		from = envelope.MarkedAs(t.Raw)
	}
	if from == to {
		return t.Raw
	}
	m, findings := codecs[from].Decode(t.Raw, envelope.Legacy)
	if findings.Refused() { // it was taken once: say what was understood then
		m = asked(t)
	}
	said, _ := codecs[to].Encode(m)
	return said
}

// Repeat says a message in a dialect, as one line: its own bytes where it was
// said in that one.
func Repeat(m envelope.Message, in envelope.Dialect) []byte {
	if m.Dialect == in && m.Raw != nil {
		return line(m.Raw)
	}
	said, _ := codecs[in].Encode(m)
	return said
}
