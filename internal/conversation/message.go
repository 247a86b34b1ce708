package conversation

import "mailboxd/envelope"

// AsksForWork reports whether a message asks for a task.
func AsksForWork(m envelope.Message) bool {
	return m.Act == envelope.Requests || m.Act == envelope.Delegates
}
