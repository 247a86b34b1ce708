package dialect

import (
	"errors"
	"fmt"

	"mailboxd/envelope"
)

// mostSaid is how many messages of one run are heard.
const mostSaid = 1000

// LeftOut ends the words of a finding of HearAll about a message that was not
// understood and is not among those that were.
const LeftOut = ": that message is left out"

// HearAll reads all that an agent printed in its dialect about the task that it
// works on: messages, one after the other, with banners, logs and one markdown
// fence around them. What is no message is passed over, with a warning if it
// bears the marks of one. The findings refuse a text in which there is no
// message. An AINL agent says one thing, and what it printed last is that.
func HearAll(d envelope.Dialect, text []byte, about envelope.Task) ([]envelope.Message, envelope.Findings) {
	c, ok := Of(d)
	if !ok {
		return nil, envelope.Findings{{Kind: envelope.InternalError, Message: "is said in " + string(d) + ", which we do not speak"}}
	}
	var said []envelope.Message
	var warnings, refusals envelope.Findings
	for object, err := range printed(text) {
		if errors.Is(err, ErrSameLine) {
			refusals = append(refusals, envelope.Finding{Kind: envelope.OutputInvalid, Message: err.Error() + "; each message needs a line of its own"})
			continue
		}
		if err != nil {
			break // what was heard before counts
		}
		if len(said) == mostSaid {
			warnings = append(warnings, envelope.Finding{Message: fmt.Sprintf("is more than %d messages: the rest is left out", mostSaid)})
			break
		}
		m, findings := c.Receive(object, about)
		switch {
		case onlyModeRefused(m, findings): // its sender gets an error for it
			said = append(said, m)
			refusals = append(refusals, findings.Refusals()...)
		case !findings.Refused():
			said = append(said, m)
			warnings = append(warnings, findings...)
		case voiced(d, object):
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

// onlyModeRefused reports whether a message delegates, and nothing but the mode of its delegation
// is wrong (CLOWL-30).
func onlyModeRefused(m envelope.Message, findings envelope.Findings) bool {
	refused := findings.Refusals()
	return m.Act == envelope.Delegates && len(refused) == 1 && refused[0].Field == "body.d.delegation_mode"
}

// voiced reports whether an object that is not valid was meant to be a message.
func voiced(d envelope.Dialect, object []byte) bool {
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
