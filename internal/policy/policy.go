// Package policy says whether a task may run. It answers from its arguments
// alone and refuses what no rule lets through.
package policy

import (
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// controls are those that can be held before an agent runs, in the order of
// the contract's fields. The deadline comes before what is measured by it.
var controls = []struct {
	name  envelope.Control
	judge func(*question) envelope.Level // who holds it for the task; nobody when it asks for nothing
}{
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

// unlimited is what an agent without a manifest says of itself.
var unlimited envelope.Manifest

// nobody holds a control that a task does not come under.
const nobody envelope.Level = ""

// Decide judges a task for an agent at an instant. A nil agent is an unknown
// one. It has no side effect, never fails, and always answers the same for the
// same input.
func Decide(t envelope.Task, agent *Subject, rules Rules, now time.Time) task.Verdict {
	switch {
	case agent == nil:
		return refuse(fmt.Sprintf("no agent %.250q is configured here", t.Agent))
	case agent.Unfit != "":
		return refuse(fmt.Sprintf("agent %q is disabled here: %s", t.Agent, agent.Unfit))
	}
	q := question{Task: t, agent: agent, manifest: agent.Manifest, rules: rules, now: now, verdict: task.Verdict{Admit: true}}
	if q.manifest == nil {
		q.manifest = &unlimited
	}
	for _, c := range controls {
		if q.mode = rules.Modes[c.name]; q.mode == envelope.Off {
			continue
		}
		q.note(c.name, c.judge(&q))
	}
	return q.answer()
}

// refuse is the verdict on a task for an agent that cannot be asked (AINL-33).
func refuse(message string) task.Verdict {
	return task.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: message}}}
}
