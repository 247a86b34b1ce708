package agent

import (
	"maps"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
)

// enforcement says who held which control: what was settled when the task was
// admitted, and what only the run can show. It claims no more than was held,
// and knows nothing from the agent.
func (g *Agent) enforcement(j Job, r envelope.Result) envelope.Levels {
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
	set(envelope.ControlTools, j.Tools != nil, g.toolsLevel(j, &r))
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
func (g *Agent) contractLevel(j Job) envelope.Level {
	if c := j.Task.Contract; c != nil && c.SchemaRef != "" && !g.opts.Schemas.Has(c.SchemaRef) {
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}

// budgetLevel: a limit is held by the cost that the agent reports. Nobody held
// what nobody reported, or a run that began when budgets were not enforced.
func budgetLevel(j Job, r envelope.Result) envelope.Level {
	if r.Cost == nil || j.Meter == nil {
		return envelope.LevelAdvisory
	}
	return envelope.LevelObserved
}

// toolsLevel: every agent is told its tools. Those that got them in their argv
// have a flag for it, says whoever wrote the command; others we can only hold
// to what they report.
func (g *Agent) toolsLevel(j Job, r *envelope.Result) envelope.Level {
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

// flagged reports whether the list of tools stood in the argv of the run. Of an
// empty list nobody can tell what the agent took it for; and a run that was
// recovered may have been started by another command than today's.
func (g *Agent) flagged(j Job) bool {
	told := newFacts(j)
	if g.workers != nil || g.binding.Inbox != nil || told.AllowedTools == "" {
		return false
	}
	untold := told
	untold.AllowedTools = ""
	with, err1 := g.argv(told)
	without, err2 := g.argv(untold)
	if err1 != nil || err2 != nil || slices.Equal(with, without) {
		return false
	}
	for i, element := range with {
		if element != without[i] && strings.Contains(element, told.AllowedTools) {
			meta, known, err := runner.ReadMeta(j.Dir)
			return err == nil && known && len(meta.Argv) > 0 && slices.Equal(meta.Argv[1:], with[1:])
		}
	}
	return false
}
