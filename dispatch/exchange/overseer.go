package exchange

import "mailboxd/dispatch/outbox"

// An Overseer has answers reviewed by the overseers of their agents.
type Overseer struct {
	*outbox.Base
	Delegator *Delegator
}
