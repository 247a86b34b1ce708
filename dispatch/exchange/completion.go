package exchange

import "mailboxd/dispatch/outbox"

// A Completion takes the outcome of a run to where that leads its task.
type Completion struct {
	*outbox.Base
	Delegator  *Delegator
	Overseer   *Overseer
	Dependents *outbox.Dependents
}
