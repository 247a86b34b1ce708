package core

import (
	"fmt"
	"maps"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Lineage is the position of a task that another task's run requests (AINL-01). Its
// limits make chains of delegation end.
type Lineage struct {
	Ancestors   []task.Task // the nearest first; at least one
	Children    int         // the number of other tasks that the parent has requested
	MaxDepth    int
	MaxChildren int
}

// Admit adds the objection to a task for an agent to a verdict, as strictly as the mode
// says. It also records which component enforces the lineage.
func (l Lineage) Admit(v task.Verdict, agent string, mode envelope.Mode) task.Verdict {
	v = Object(v, mode, l.Objection(agent))
	v.Terms = WithLineage(v.Terms, mode)
	return v
}

// Objection returns the finding against a task for an agent: the task is too deep, the
// agent already has a task above it (CLOWL-35), or the parent has too many children. A
// finding without a message means no objection.
func (l Lineage) Objection(agent string) envelope.Finding {
	parent := l.Ancestors[0]
	if parent.Depth+1 > l.MaxDepth {
		return envelope.Finding{Kind: envelope.PolicyViolation, Field: "requester_id",
			Message: fmt.Sprintf("the task %s of agent %q is %d below the first one, as deep as it may be", parent.ID, parent.Agent, parent.Depth)}
	}
	for _, ancestor := range l.Ancestors {
		if ancestor.Agent == agent {
			return envelope.Finding{Kind: envelope.DelegationCycle, Field: "target_agent",
				Message: fmt.Sprintf("agent %q has the task %s, which this one is for", agent, ancestor.ID)}
		}
	}
	if l.Children >= l.MaxChildren {
		return envelope.Finding{Kind: envelope.PolicyViolation, Field: "requester_id",
			Message: fmt.Sprintf("the task %s of agent %q has asked for %d others already, as many as it may", parent.ID, parent.Agent, l.Children)}
	}
	return envelope.Finding{}
}

// Object adds a finding to a verdict, as strictly as the mode says. It ignores a finding
// without a message.
func Object(v task.Verdict, mode envelope.Mode, f envelope.Finding) task.Verdict {
	if f.Message == "" || mode == envelope.Off {
		return v
	}
	if mode == envelope.Enforce {
		return task.Verdict{Findings: append(v.Findings.Warnings(), f), Terms: v.Terms}
	}
	f.Kind = ""
	v.Findings = append(v.Findings.Warnings(), f)
	return v
}

// WithLineage returns terms that record how strictly the mode enforces the lineage.
func WithLineage(terms task.Terms, mode envelope.Mode) task.Terms {
	if mode == envelope.Off {
		return terms
	}
	levels := envelope.Levels{}
	maps.Copy(levels, terms.Levels)
	if levels[envelope.ControlLineage] = envelope.LevelDaemon; mode == envelope.Warn {
		levels[envelope.ControlLineage] = envelope.LevelAdvisory
	}
	terms.Levels = levels
	return terms
}
