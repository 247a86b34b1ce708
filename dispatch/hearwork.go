package dispatch

import (
	"mailboxd/envelope"
)

// handOn finds the task whose agent asks for something, and says why that may
// not hand it on, if so: it does not have it (CLOWL-30).
func (d *Dispatcher) handOn(tx *transaction, c *claim) (why envelope.Finding, err error) {
	m := *c.said
	above, found, err := d.resolveWork(tx, m)
	switch {
	case err != nil:
		return envelope.Finding{}, err
	case found:
		c.above, c.parent = &above, &above
		if m.Act == envelope.Delegates {
			if c.tie = m.Tie; c.tie == envelope.Oversee { // of which only we ask: anybody may append a line (CAP-24)
				c.tie = envelope.Assist
			}
		}
	case m.Act == envelope.Delegates && (m.Dialect == envelope.CLowl || d.agents.Known(m.From)): // in CAP, others begin something with it (CAP-17)
		why = envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "has no such task that it could hand on"}
	}
	return why, nil
}
