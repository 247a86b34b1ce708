package dispatch

import (
	"fmt"
	"slices"

	"mailboxd/internal/task"
)

// A Person is somebody who wants to decide: which approvers they are here, and
// the user of the operating system they came as. Somebody without a name is no
// approver.
type Person struct {
	Names []string // all of them: what one of them asked for, none may approve
	As    string   // the one to decide as; "" for whichever is asked
	UID   int
}

func (p Person) String() string {
	switch {
	case p.As != "":
		return p.As
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Names[0]
}

// may reports whether a person can decide what asks for an approver.
func (p Person) may(approver string) bool {
	return slices.Contains(p.Names, approver) && (p.As == "" || p.As == approver)
}

// A ForbiddenError says why somebody may not decide.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// forbidden says why a person may not decide, "" when they may (AINL-49).
func (p Person) forbidden(row task.Task, approver string) string {
	switch {
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d is no approver", p.UID)
	case slices.Contains(p.Names, row.Requester):
		return fmt.Sprintf("%s asked for the task, and nobody approves their own", row.Requester)
	case slices.Contains(p.Names, row.Agent):
		return fmt.Sprintf("%s is the task's agent", row.Agent)
	case approver != "" && !p.may(approver):
		return fmt.Sprintf("only %s may decide about it, and %s is somebody else", approver, p)
	}
	return ""
}
