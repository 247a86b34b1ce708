package core

import (
	"fmt"
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
)

// By says who gave a command, and why. It is only recorded; permission is checked before.
type By struct {
	Who    string
	Reason string // may be empty
}

// String returns the name and the reason.
func (b By) String() string {
	if b.Reason == "" {
		return b.Who
	}
	return b.Who + ": " + b.Reason
}

// Data returns event data with the name and the reason.
func (b By) Data() map[string]any {
	data := map[string]any{"by": b.Who}
	if b.Reason != "" {
		data["reason"] = b.Reason
	}
	return data
}

// A Person is a user of this machine who decides about tasks. A person without names isn't
// an approver.
type Person struct {
	Names []string // approver names
	User  string   // the name of the user; also what this name requested is the person's own
	Self  task.SelfRule
	As    string // the name to decide under; "" for the name that is asked
	UID   int
	Proof task.Proof // of the decision that the person makes; zero for none

	Digest string // of the question that the person saw; "" for the one that is asked
}

// String returns the name under which a person decides.
func (p Person) String() string {
	switch {
	case p.As != "":
		return p.As
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Names[0]
}

// Name returns the name under which a person answers a question to an approver.
func (p Person) Name(approver string) string {
	if approver != "" {
		return approver
	}
	return p.String()
}

// Requested reports whether a person requested a task, by the name of its requester, which
// nobody proves. Upper and lower case are the same here.
func (p Person) Requested(t task.Task) bool {
	return t.Requester != "" && (strings.EqualFold(p.User, t.Requester) ||
		slices.ContainsFunc(p.Names, func(name string) bool { return strings.EqualFold(name, t.Requester) }))
}

// Needs returns the least proof of a person's decision about a task.
func (p Person) Needs(t task.Task) task.ProofLevel {
	if p.Requested(t) {
		return p.Self.Needs()
	}
	return task.ProofNone
}

// Forbidden says why a person can't decide about a task; "" if they can (AINL-49). Only the
// approver may decide; "" is any approver.
func (p Person) Forbidden(t task.Task, approver string) string {
	switch {
	case len(p.Names) == 0:
		return fmt.Sprintf("uid %d is no approver", p.UID)
	case p.Self == task.SelfRefuse && p.Requested(t):
		return fmt.Sprintf("%s requested this task; another approver must decide (approval.self is refuse)", t.Requester)
	case slices.Contains(p.Names, t.Agent):
		return fmt.Sprintf("%s is the task's agent", t.Agent)
	case approver != "" && (!slices.Contains(p.Names, approver) || p.As != "" && p.As != approver):
		return fmt.Sprintf("only %s may decide about it, and %s is somebody else", approver, p)
	}
	return ""
}
