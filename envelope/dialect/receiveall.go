package dialect

import (
	"errors"
	"fmt"

	"mailboxd/envelope"
)

// mostReceived limits the messages of one run.
const mostReceived = 1000

// LeftOut ends the text of a finding of ReceiveAll about a message that was refused and left
// out.
const LeftOut = ": that message is left out"

// ReceiveAll reads all messages that an agent printed about its task, in its dialect: one after
// the other, with banners, logs and one markdown fence around them. It skips text that is no
// message, with a warning if the text has the marks of one. The findings refuse a text without
// a message. An AINL agent gives one answer: the last one in the text.
func ReceiveAll(d envelope.Dialect, text []byte, about envelope.Task) ([]envelope.Message, envelope.Findings) {
	c, ok := Of(d)
	if !ok {
		return nil, envelope.Findings{{Kind: envelope.InternalError, Message: "is in the unknown dialect " + string(d)}}
	}
	var said []envelope.Message
	var warnings, refusals envelope.Findings
	for object, err := range printed(text) {
		if errors.Is(err, ErrSameLine) {
			refusals = append(refusals, envelope.Finding{Kind: envelope.OutputInvalid, Message: err.Error() + "; each message needs a line of its own"})
			continue
		}
		if err != nil {
			break // the messages before the error count
		}
		if len(said) == mostReceived {
			warnings = append(warnings, envelope.Finding{Message: fmt.Sprintf("is more than %d messages: the rest is left out", mostReceived)})
			break
		}
		m, findings := c.Receive(object, about)
		switch {
		case onlyModeRefused(m, findings): // the agent gets an error for it
			said = append(said, m)
			refusals = append(refusals, findings.Refusals()...)
		case !findings.Refused():
			said = append(said, m)
			warnings = append(warnings, findings...)
		case meantAsMessage(d, object):
			refusals = append(refusals, findings.Refusals()...)
		}
	}
	switch {
	case len(said) == 0 && len(refusals) == 0:
		return nil, envelope.Findings{{Kind: envelope.OutputInvalid, Message: "is no message of the agent's dialect"}}
	case len(said) == 0:
		return nil, refusals
	case d == envelope.AINL:
		return said[len(said)-1:], warnings
	}
	for _, f := range refusals {
		warnings = append(warnings, envelope.Finding{Field: f.Field, Message: f.Message + LeftOut})
	}
	return said, warnings
}

// onlyModeRefused reports whether a message delegates, and only the mode of its delegation is
// wrong (CLOWL-30).
func onlyModeRefused(m envelope.Message, findings envelope.Findings) bool {
	refused := findings.Refusals()
	return m.Act == envelope.Delegates && len(refused) == 1 && refused[0].Field == "body.d.delegation_mode"
}

// meantAsMessage reports whether an invalid object was meant to be a message.
func meantAsMessage(d envelope.Dialect, object []byte) bool {
	if d == envelope.AINL || envelope.MarkedAs(object) == d {
		return true
	}
	if d == envelope.CAP {
		kind, _ := textOf(membersOf(object)["type"])
		return capWords[kind] != ""
	}
	if d == envelope.Clutch {
		return speaksClutch(membersOf(object))
	}
	return membersOf(object)["p"] != nil
}
