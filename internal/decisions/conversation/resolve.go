package conversation

import (
	"cmp"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// A Reference is one way in which a message names a task: by the task's id, or by the ID of
// another message about the task.
type Reference struct {
	Task    envelope.ID
	Message string // if Task is ""
}

// References returns the references of a message to a task, the most reliable first: its
// task id, then the message that it replies to. A request has its own id, so its references
// are the tasks that it is part of (CAP-21).
func References(m envelope.Message) (all []Reference) {
	switch {
	case AsksForWork(m):
		all = prefixes(m)
	case m.Task != "":
		all = []Reference{{Task: m.Task}}
	}
	if m.Cause != "" {
		all = append(all, Reference{Task: dialect.TaskID(m.Cause)}, Reference{Message: m.Cause})
	}
	return all
}

// prefixes returns the tasks in the prefixes of a dotted CAP id, the nearest first.
func prefixes(m envelope.Message) (all []Reference) {
	if m.Dialect != envelope.CAP {
		return nil
	}
	name := cmp.Or(m.ID, string(m.Task))
	for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name, '.') {
		name = name[:at]
		all = append(all, Reference{Task: dialect.TaskID(name)})
	}
	return all
}

// ByThread reports whether a message without a reference is for the tasks of its
// conversation that wait for its recipients.
func ByThread(m envelope.Message) bool { return m.Dialect == envelope.CLowl }

// MustHave reports whether a message delegates only the task that it names. A message
// without a Cause delegates any task that its sender has (CLOWL-30).
func MustHave(m envelope.Message) bool {
	return m.Act == envelope.Delegates && m.Dialect == envelope.CLowl && m.Cause != ""
}

// InWork reports whether an agent has a task now, or will have it again.
func InWork(t task.Task) bool {
	return t.State == task.Running || t.State == task.Waiting || Suspended(t)
}
