package task

import (
	"strings"

	"mailboxd/envelope"
)

// A Wait says what wakes a held task, beside its time and a person: a change of what its Key
// names. The task is judged then. A task has at most one for each of its reasons.
type Wait struct {
	Reason Reason
	Key    Key
}

// A Key names what a held task waits for. The zero value names nothing.
type Key string

const afterPrefix = "after:"

// AfterKey names the end of a task.
func AfterKey(id envelope.ID) Key { return Key(afterPrefix + string(id)) }

// Task returns the task whose end a key names, and whether it names one.
func (k Key) Task() (envelope.ID, bool) {
	id, ok := strings.CutPrefix(string(k), afterPrefix)
	return envelope.ID(id), ok
}
