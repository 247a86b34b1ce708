package core

import (
	"fmt"
	"maps"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A Lineage is where a task stands that the run of another one asks for (AINL-01). That
// has limits, so that agents that ask agents come to an end.
type Lineage struct {
	Above       []task.Task // the tasks above it, the nearest first; at least one
	Children    int         // how many others the nearest one has asked for
	MaxDepth    int
	MaxChildren int
}

// Admit adds to a verdict on a task for an agent what there is to object to, as strictly
// as the mode says, and which component enforces that.
func (l Lineage) Admit(v task.Verdict, agent string, mode envelope.Mode) task.Verdict {
	v = Object(v, mode, l.Objection(agent))
	v.Terms = WithLineage(v.Terms, mode)
	return v
}

// Objection is what there is to object to in a task for an agent: it is too deep below
// the first one, its agent has a part in that already (CLOWL-35), or there are too many
// tasks of its kind. A finding without a message is none.
func (l Lineage) Objection(agent string) envelope.Finding {
	parent := l.Above[0]
	if parent.Depth+1 > l.MaxDepth {
		return envelope.Finding{Kind: envelope.PolicyViolation, Field: "requester_id",
			Message: fmt.Sprintf("the task %s of agent %q is %d below the first one, as deep as it may be", parent.ID, parent.Agent, parent.Depth)}
	}
	for _, above := range l.Above {
		if above.Agent == agent {
			return envelope.Finding{Kind: envelope.DelegationCycle, Field: "target_agent",
				Message: fmt.Sprintf("agent %q has the task %s, which this one is for", agent, above.ID)}
		}
	}
	if l.Children >= l.MaxChildren {
		return envelope.Finding{Kind: envelope.PolicyViolation, Field: "requester_id",
			Message: fmt.Sprintf("the task %s of agent %q has asked for %d others already, as many as it may", parent.ID, parent.Agent, l.Children)}
	}
	return envelope.Finding{}
}

// Object adds a finding to a verdict, as strictly as the mode says. A finding without a
// message is none.
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

// WithLineage are the terms of a task whose lineage is held to its limits as strictly as
// the mode says.
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
