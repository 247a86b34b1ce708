// Package policy says whether a task may run. It answers from its arguments
// alone and refuses what no rule lets through.
package policy

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// Rules are the operator's choices. The zero value enforces everything.
type Rules struct {
	Approval     envelope.Mode
	Budget       envelope.Mode
	ChangeWindow envelope.Mode
	WindowExempt []string // task types without a change window, as path.Match patterns (F3)
}

// A Subject is what policy needs to know of the agent a task is for.
type Subject struct {
	Manifest *envelope.Manifest // nil: every role, the request's tools, no standing approval
	Metered  bool               // what it spends can be known, or the operator waived knowing
}

// A Verdict says what may happen to a task. The zero value refuses.
type Verdict struct {
	Admit        bool
	Hold         []ledger.Reason   // admitted, but not before these are gone
	Until        time.Time         // when a held task is to be judged again; zero: when somebody acts
	Findings     envelope.Findings // why it is refused, and warnings
	Digest       string            // names what a person would agree to; not policy's to say
	Plan         jsontext.Value    // and says it, an object
	ledger.Terms                   // what it is admitted with
}

// Decide judges a task for an agent at an instant. A nil agent is an unknown
// one. It has no side effect and always answers the same for the same input.
func Decide(t envelope.Task, agent *Subject, rules Rules, now time.Time) Verdict {
	if agent == nil {
		return refuse(envelope.UnknownAgent, "target_agent", fmt.Sprintf("no agent %q is configured here", t.Agent))
	}
	v := Verdict{Admit: true, Terms: ledger.Terms{Deadline: t.Deadline}}
	controls := []func(*Verdict, envelope.Task, *Subject, Rules, time.Time){
		role, deadline, budget, tools, window, approval,
	}
	for _, control := range controls {
		control(&v, t, agent, rules, now)
	}
	if v.Findings.Refused() {
		return Verdict{Findings: v.Findings}
	}
	v.Until = earliest(v.Until, t.Deadline)
	if len(v.Hold) == 0 {
		v.Until = time.Time{}
	}
	return v
}

func refuse(kind envelope.Kind, field, message string) Verdict {
	return Verdict{Findings: envelope.Findings{{Kind: kind, Field: field, Message: message}}}
}

// object adds what a control found, as strictly as its mode says.
func (v *Verdict) object(mode envelope.Mode, kind envelope.Kind, field, message string) {
	switch mode {
	case envelope.Enforce:
		v.Findings = append(v.Findings, envelope.Finding{Kind: kind, Field: field, Message: message})
	case envelope.Warn:
		v.Findings = append(v.Findings, envelope.Finding{Field: field, Message: message})
	}
}

// hold makes the task wait for a reason, as strictly as the mode says.
func (v *Verdict) hold(mode envelope.Mode, reason ledger.Reason, field, message string) {
	if mode == envelope.Enforce {
		v.Hold = append(v.Hold, reason)
		return
	}
	v.object(mode, "", field, message)
}

// role: the agent's manifest must have the role asked for (AINL-13). Only the
// legacy reading lets a request without one come this far.
func role(v *Verdict, t envelope.Task, agent *Subject, _ Rules, _ time.Time) {
	if t.Role == "" || agent.Manifest == nil || len(agent.Manifest.RoleTypes) == 0 || slices.Contains(agent.Manifest.RoleTypes, t.Role) {
		return
	}
	v.object(envelope.Enforce, envelope.RoleMismatch, "target_role",
		fmt.Sprintf("agent %q has no role %q, only %q", t.Agent, t.Role, agent.Manifest.RoleTypes))
}

// deadline: a task that is too late is not begun (AINL-45).
func deadline(v *Verdict, t envelope.Task, _ *Subject, _ Rules, now time.Time) {
	if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
		v.object(envelope.Enforce, envelope.DeadlineExceeded, "deadline", t.Deadline.UTC().Format(time.RFC3339)+" is past")
	}
}

// budget: a limit that nobody can meter must not look like one (AINL-46).
func budget(v *Verdict, t envelope.Task, agent *Subject, rules Rules, _ time.Time) {
	if rules.Budget == envelope.Enforce {
		v.Budget = t.Budget
	}
	if t.Budget == (envelope.Budget{}) || agent.Metered {
		return
	}
	v.object(rules.Budget, envelope.PolicyViolation, "budget_limit",
		fmt.Sprintf("agent %q does not report what it spends; output: envelope or allow_unmetered: true lets it take a budget", t.Agent))
}

// window: a task starts only inside its change window (AINL-58). Before it,
// the task is held; when no window can be reached any more, it is refused.
func window(v *Verdict, t envelope.Task, _ *Subject, rules Rules, now time.Time) {
	if len(t.ChangeWindows) == 0 || rules.ChangeWindow == envelope.Off || exempt(t.Type, rules.WindowExempt) {
		return
	}
	var next time.Time
	for _, w := range t.ChangeWindows {
		switch {
		case !now.Before(w.Start) && now.Before(w.End):
			v.Until = earliest(v.Until, w.End) // if something else holds it
			return
		case now.Before(w.Start) && (t.Deadline.IsZero() || w.Start.Before(t.Deadline)):
			next = earliest(next, w.Start)
		}
	}
	if next.IsZero() {
		v.object(rules.ChangeWindow, envelope.ChangeWindowMissed, "policy_context.change_window", "is over, or begins after the deadline")
		return
	}
	v.hold(rules.ChangeWindow, ledger.ChangeWindow, "policy_context.change_window", "has not begun")
	if rules.ChangeWindow == envelope.Enforce {
		v.Until = earliest(v.Until, next)
	}
}

func exempt(taskType string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, taskType) // patterns were checked when the configuration was read
		return ok
	})
}

// approval: what a person must agree to waits for one (AINL-17, AINL-48), and
// for the one who is named (AINL-49).
func approval(v *Verdict, t envelope.Task, agent *Subject, rules Rules, _ time.Time) {
	need := t.Approval
	if agent.Manifest != nil && agent.Manifest.RequiresApproval(t.Type) {
		need = before(need)
	}
	if need == envelope.ApprovalNone {
		return
	}
	if rules.Approval == envelope.Enforce {
		v.Approval, v.Approver = need, t.HumanApprover
	}
	if need != envelope.ApprovalPost || rules.Approval == envelope.Warn {
		v.hold(rules.Approval, ledger.Approval, "approval_required", "a person should approve this task")
	}
}

// before adds the approval before a run to what a request asks for.
func before(need envelope.Approval) envelope.Approval {
	if need == envelope.ApprovalPost || need == envelope.ApprovalBoth {
		return envelope.ApprovalBoth
	}
	return envelope.ApprovalPre
}

// tools: a task uses what both its request and the manifest allow; a request
// that names none leaves the manifest's (AINL-14, AINL-47).
func tools(v *Verdict, t envelope.Task, agent *Subject, _ Rules, _ time.Time) {
	m := agent.Manifest
	switch {
	case m == nil || m.AvailableTools == nil:
		v.Tools = t.AllowedTools
		return
	case t.AllowedTools == nil:
		v.Tools = m.AvailableTools
		return
	}
	v.Tools = []string{}
	for _, tool := range t.AllowedTools {
		if slices.Contains(m.AvailableTools, tool) {
			v.Tools = append(v.Tools, tool)
			continue
		}
		v.object(envelope.Warn, "", "allowed_tools", fmt.Sprintf("agent %q has no tool %q: left out", t.Agent, tool))
	}
}

// earliest returns the earlier of two instants; zero is no instant.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
