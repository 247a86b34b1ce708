package core

import (
	"fmt"
	"slices"

	"mailboxd/internal/task"
)

// By says who gave a command, and why. It is for the record: whether they may is
// decided before.
type By struct {
	Who    string
	Reason string // may be empty
}

// String returns both.
func (b By) String() string {
	if b.Reason == "" {
		return b.Who
	}
	return b.Who + ": " + b.Reason
}

// Data is how a By stands in an event.
func (b By) Data() map[string]any {
	data := map[string]any{"by": b.Who}
	if b.Reason != "" {
		data["reason"] = b.Reason
	}
	return data
}

// A Person is a user of this machine who wants to decide about a task: the names of
// the approvers they are, and their uid. A person without names is no approver.
type Person struct {
	Names []string // all of them: a person can't approve what one of them asked for
	As    string   // the name to decide as; "" for the one that is asked
	UID   int
}

// String returns the name that a person decides as.
func (p Person) String() string {
	switch {
	case p.As != "":
		return p.As
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Names[0]
}

// name is the name under which a person decides what asks for an approver.
func (p Person) name(approver string) string {
	if approver != "" {
		return approver
	}
	return p.String()
}

// Forbidden says why a person can't decide about a task, "" when they can (AINL-49).
// The approver is the only one who may; "" for any.
func (p Person) Forbidden(t task.Task, approver string) string {
	switch {
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d is no approver", p.UID)
	case slices.Contains(p.Names, t.Requester):
		return fmt.Sprintf("%s asked for the task, and nobody approves their own", t.Requester)
	case slices.Contains(p.Names, t.Agent):
		return fmt.Sprintf("%s is the task's agent", t.Agent)
	case approver != "" && (!slices.Contains(p.Names, approver) || p.As != "" && p.As != approver):
		return fmt.Sprintf("only %s may decide about it, and %s is somebody else", approver, p)
	}
	return ""
}
