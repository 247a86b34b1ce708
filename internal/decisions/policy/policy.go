// Package policy decides whether a task may run. It uses its arguments only, and refuses a
// task that no rule admits.
package policy

import (
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// controls are the controls that apply before a run, in the order of the contract's fields.
// Misspelt controls come first, because they explain the findings of the others. The deadline
// comes before the controls that use it.
var controls = []struct {
	name  envelope.Control
	judge func(*question) envelope.Level // returns the enforcing component; notApplicable if the control doesn't apply
}{
	{envelope.ControlNearMisses, (*question).nearMisses},
	{envelope.ControlRole, (*question).role},
	{envelope.ControlTaskType, (*question).taskType},
	{envelope.ControlContextSize, (*question).contextSize},
	{envelope.ControlRefs, (*question).refs},
	{envelope.ControlOutputContract, (*question).outputContract},
	{envelope.ControlSensitivity, (*question).sensitivity},
	{envelope.ControlLocality, (*question).locality},
	{envelope.ControlDeadline, (*question).deadline},
	{envelope.ControlBudget, (*question).budget},
	{envelope.ControlTools, (*question).tools},
	{envelope.ControlExecutionMode, (*question).executionMode},
	{envelope.ControlApproval, (*question).approval},
	{envelope.ControlEnvironment, (*question).environment},
	{envelope.ControlChangeWindow, (*question).changeWindow},
	{envelope.ControlTrustDomain, (*question).trustDomain},
}

// unlimited is the manifest of an agent without one.
var unlimited envelope.Manifest

// notApplicable is the level of a control that doesn't apply.
const notApplicable envelope.Level = ""

// Decide judges a task for an agent at a time. A nil agent is unknown. Decide has no side
// effects and never fails; the same input gives the same verdict.
func Decide(t envelope.Task, agent *Subject, rules Rules, now time.Time) task.Verdict {
	switch {
	case agent == nil:
		return rules.refuse(t, fmt.Sprintf("no agent %.250q is configured here", t.Agent))
	case agent.Unfit != "":
		return rules.refuse(t, fmt.Sprintf("agent %q is disabled here: %s", t.Agent, agent.Unfit))
	}
	q := question{Task: t, agent: agent, manifest: agent.Manifest, rules: rules, now: now, verdict: task.Verdict{Admit: true}}
	q.verdict.Calls = agent.Calls
	if q.manifest == nil {
		q.manifest = &unlimited
	}
	for _, c := range controls {
		if q.mode = rules.Modes[c.name]; q.mode == envelope.Off {
			continue
		}
		q.setLevel(c.name, c.judge(&q))
	}
	if t.Clutch.IsSigned() && !t.Clutch.Auth.Verified { // CLUTCH-63
		q.warn("security.auth", "is "+envelope.Unverified+": no key was configured for it")
	}
	return q.answer()
}

// refuse returns the verdict on a task for an unusable agent (AINL-33). An answer of the agent
// may be in review, and its approval needs the same proof as before.
func (r Rules) refuse(t envelope.Task, message string) task.Verdict {
	return task.Verdict{
		Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: message}},
		Terms:    task.Terms{Proof: r.proofOf(t)},
	}
}
