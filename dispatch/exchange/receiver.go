package exchange

import "mailboxd/dispatch/outbox"

// A Receiver takes messages in.
type Receiver struct {
	*outbox.Base
	Acceptor  *Acceptor
	Delegator *Delegator
	Completer *Completer
}
