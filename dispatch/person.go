package dispatch

import (
	"fmt"
	"slices"

	"mailboxd/internal/ledger"
)

// A Person is somebody who wants to decide: which approvers they are here, and
// the user of the operating system they came as. Somebody without a name is no
// approver.
type Person struct {
	Names []string
	UID   int
}

func (p Person) String() string {
	if len(p.Names) == 0 {
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Names[0]
}

// A ForbiddenError says why somebody may not decide.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// forbidden says why a person may not decide, "" when they may (AINL-49).
func (p Person) forbidden(row ledger.Task, approver string) string {
	switch {
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d is no approver", p.UID)
	case slices.Contains(p.Names, row.Requester):
		return fmt.Sprintf("%s asked for the task, and nobody approves their own", row.Requester)
	case slices.Contains(p.Names, row.Agent):
		return fmt.Sprintf("%s is the task's agent", row.Agent)
	case approver != "" && !slices.Contains(p.Names, approver):
		return fmt.Sprintf("only %s may decide about it, and %s is somebody else", approver, p)
	}
	return ""
}
