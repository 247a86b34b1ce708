package agent

import (
	"io"
	"maps"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolcall"
)

// enforcement returns which component enforced each control: the levels of the admission,
// and those that only the run shows. It claims no more than was enforced, and uses nothing
// that the agent says about it.
func (g *Agent) enforcement(j task.Job, exit task.Exit, r envelope.Result) envelope.Levels {
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
	_, inStep := g.opts.Workflows.StepOf(j.Task)
	set(envelope.ControlOutputContract, inStep || j.Task.Contract != nil, g.contractLevel(j))
	set(envelope.ControlExecutionMode, g.advises(), envelope.LevelObserved)
	held := j.Tools != nil || g.binding.Permission != "" || j.Calls != nil
	if _, judged := levels[envelope.ControlTools]; judged || held {
		set(envelope.ControlTools, held, g.toolsLevel(j, &r))
	}
	if _, judged := levels[envelope.ControlBudget]; judged || j.Task.Budget != (envelope.Budget{}) || j.Budget != (envelope.Budget{}) {
		set(envelope.ControlBudget, true, budgetLevel(j, r))
	}
	if _, judged := levels[envelope.ControlDeadline]; !judged {
		set(envelope.ControlDeadline, !j.Deadline.IsZero(), envelope.LevelDaemon)
	}
	g.addSandbox(j, levels, exit)
	addBrokerLevel(j, levels, exit)
	return levels
}

// contractLevel returns the level of the output contract: the daemon's if an answer becomes
// a success only after the check.
func (g *Agent) contractLevel(j task.Job) envelope.Level {
	if c := j.Task.Contract; c != nil && c.SchemaRef != "" && !g.opts.Schemas.Has(c.SchemaRef) {
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}

// budgetLevel returns the level of the budget. The reported cost enforces a limit. It is
// advisory without a report, or if budgets weren't enforced when the run began. A program's
// own flag doesn't raise it: programs check their spending only between two steps.
func budgetLevel(j task.Job, r envelope.Result) envelope.Level {
	if r.Cost == nil || j.Meter == nil || r.Cost.Unpriced && j.Allowance.USDCents != nil {
		return envelope.LevelAdvisory
	}
	return envelope.LevelObserved
}

// toolsLevel returns the level of the tool list. Every agent gets the list. If argv had it,
// the program has a flag for it, as its profile or its operator knows; other agents are
// checked by their own reports.
func (g *Agent) toolsLevel(j task.Job, r *envelope.Result) envelope.Level {
	switch {
	case r.Status == envelope.Rejected: // no agent ran
		return envelope.LevelAdvisory
	case j.Calls != nil:
		return callsLevel(g.binding.Profile, j.Dir)
	case g.flagged(j):
		return envelope.LevelAgentFlag
	case reportedTools(r).present:
		return envelope.LevelObserved
	}
	return envelope.LevelAdvisory
}

// callsLevel returns the level of the tool list for an agent that asks before its calls. It is never
// the daemon's, since the agent chooses to ask.
func callsLevel(p Profile, dir string) envelope.Level {
	f, err := openRegular(workDir(dir), progressFile)
	if err != nil {
		return envelope.LevelAdvisory
	}
	defer f.close()
	asked, unasked := toolcall.Made(io.NewSectionReader(f, 0, min(f.size, maxProgress)))
	switch {
	case p.Asks() && !unasked:
		return envelope.LevelAgentFlag
	case asked || unasked:
		return envelope.LevelObserved
	}
	return envelope.LevelAdvisory
}

// flagged reports whether the argv of the run had the tool list. A recovered run may have
// started with another command than the current one.
func (g *Agent) flagged(j task.Job) bool {
	if g.workers != nil || g.binding.Inbox != nil {
		return false
	}
	with, err := g.argv(j, newFacts(j))
	if err != nil || !g.passesTools(j, with) {
		return false
	}
	meta, known, err := runner.ReadMeta(j.Dir)
	return err == nil && known && len(meta.Argv) > 0 && slices.Equal(meta.Argv[1:], with[1:]) && g.hadRules(j)
}

// hadRules reports whether the run was started with the rules of the current binding.
func (g *Agent) hadRules(j task.Job) bool {
	r := g.binding.rulesFor(j)
	if r == nil {
		return true
	}
	f, err := openRegular(j.Dir, r.name)
	if err != nil {
		return false
	}
	defer f.close()
	text, err := f.read(0, int64(len(r.text))+1)
	return err == nil && string(text) == r.text
}

// passesTools reports whether an argv has the tools of a job: by a profile with an
// enforcing flag, or by the templates. An empty list in a template doesn't count, because
// its meaning to the program is unknown.
func (g *Agent) passesTools(j task.Job, with []string) bool {
	if r := recipes[g.binding.Profile]; g.runArguments != nil && r.tools != nil {
		return j.Tools == nil || r.holds == nil || r.holds(j.Tools)
	}
	list := toolList(j.Tools)
	if list == "" {
		return false
	}
	withoutTools := newFacts(j)
	withoutTools.AllowedTools = ""
	without, err := g.argv(j, withoutTools)
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
