package conversation

import (
	"cmp"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// A Reference is one way in which a message names a task: by the task's id, or by the
// name of a message about the task.
type Reference struct {
	Task    envelope.ID
	Message string // where Task is ""
}

// References returns how a message names a task, the best way first: by the task's id,
// and by the message that it replies to, which is a request or is about a task. A
// request has its own id, so it names the task that it is part of (CAP-21).
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

// prefixes returns the tasks that a dotted id of CAP is part of, the nearest first.
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

// ByThread reports whether a message that names no task is for the tasks of its
// conversation that wait for its recipients.
func ByThread(m envelope.Message) bool { return m.Dialect == envelope.CLowl }

// MustHave reports whether a message hands on only the task that it names. A message
// without a Cause hands on any task that its sender has (CLOWL-30).
func MustHave(m envelope.Message) bool {
	return m.Act == envelope.Delegates && m.Dialect == envelope.CLowl && m.Cause != ""
}

// InWork reports whether the agent of a task has it, or will have it again.
func InWork(t task.Task) bool {
	return t.State == task.Running || t.State == task.Waiting || Suspended(t)
}
