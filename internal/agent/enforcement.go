package agent

import (
	"maps"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// enforcement says who held which control: what was settled when the task was
// admitted, and what only the run can show. It claims no more than was held,
// and knows nothing from the agent.
func (g *Agent) enforcement(j task.Job, r envelope.Result) envelope.Levels {
	levels := envelope.Levels{}
	maps.Copy(levels, j.Levels)
	set := func(c envelope.Control, applies bool, held envelope.Level) {
		delete(levels, c)
		switch mode := g.mode(c); {
		case !applies || mode == envelope.Off:
		case mode == envelope.Warn:
			levels[c] = envelope.LevelAdvisory
		default:
			levels[c] = held
		}
	}
	set(envelope.ControlOutputContract, j.Task.Contract != nil, g.contractLevel(j))
	set(envelope.ControlExecutionMode, g.advises(), envelope.LevelObserved)
	if _, judged := levels[envelope.ControlTools]; judged || j.Tools != nil {
		set(envelope.ControlTools, j.Tools != nil, g.toolsLevel(j, &r))
	}
	if _, judged := levels[envelope.ControlBudget]; judged || j.Task.Budget != (envelope.Budget{}) || j.Budget != (envelope.Budget{}) {
		set(envelope.ControlBudget, true, budgetLevel(j, r))
	}
	if _, judged := levels[envelope.ControlDeadline]; !judged {
		set(envelope.ControlDeadline, !j.Deadline.IsZero(), envelope.LevelDaemon)
	}
	return levels
}

// contractLevel is that of an answer no requester gets as a success unless we
// found it right, as far as we know what that is.
func (g *Agent) contractLevel(j task.Job) envelope.Level {
	if c := j.Task.Contract; c != nil && c.SchemaRef != "" && !g.opts.Schemas.Has(c.SchemaRef) {
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}

// budgetLevel: a limit is held by the cost that the agent reports. Nobody held
// what nobody reported, or a run that began when budgets were not enforced. A
// program's own flag for it claims no more: programs look at what they spent
// between two steps.
func budgetLevel(j task.Job, r envelope.Result) envelope.Level {
	if r.Cost == nil || j.Meter == nil || r.Cost.Unpriced && j.Allowance.USDCents != nil {
		return envelope.LevelAdvisory
	}
	return envelope.LevelObserved
}

// toolsLevel: every agent is told its tools. Those that got them in their argv
// have a flag for it, says its profile or whoever wrote the command; others we
// can only hold to what they report.
func (g *Agent) toolsLevel(j task.Job, r *envelope.Result) envelope.Level {
	switch {
	case r.Status == envelope.Rejected: // no agent ran
		return envelope.LevelAdvisory
	case g.flagged(j):
		return envelope.LevelAgentFlag
	case reportedTools(r).given:
		return envelope.LevelObserved
	}
	return envelope.LevelAdvisory
}

// flagged reports whether the list of tools stood in the argv of the run. A run
// that was recovered may have been started by another command than today's.
func (g *Agent) flagged(j task.Job) bool {
	if g.workers != nil || g.binding.Inbox != nil {
		return false
	}
	with, err := g.argv(j, newFacts(j))
	if err != nil || !g.tellsTools(j, with) {
		return false
	}
	meta, known, err := runner.ReadMeta(j.Dir)
	return err == nil && known && len(meta.Argv) > 0 && slices.Equal(meta.Argv[1:], with[1:])
}

// tellsTools reports whether an argv says the tools of a job: by the profile,
// which knows a flag that holds, or by its templates. Of an empty list in those
// nobody can tell what the agent takes it for.
func (g *Agent) tellsTools(j task.Job, with []string) bool {
	if g.terms != nil && recipes[g.binding.Profile].tools {
		return true
	}
	list := toolList(j.Tools)
	if list == "" {
		return false
	}
	untold := newFacts(j)
	untold.AllowedTools = ""
	without, err := g.argv(j, untold)
	if err != nil {
		return false
	}
	for i, element := range with {
		if element != without[i] {
			return strings.Contains(element, list)
		}
	}
	return false
}
