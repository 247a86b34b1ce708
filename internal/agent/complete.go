package agent

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// complete fills in what is ours to say, and holds the result against what was
// promised: to the requester by the task, to us by the manifest.
func (g *Agent) complete(j task.Job, exit task.Exit, said answer) envelope.Result {
	r := said.result
	r.TaskID, r.AgentID = j.Task.ID, g.binding.ID
	r.Time = envelope.TimeUsed{Started: exit.Started, Finished: exit.Finished, Wall: exit.Wall}
	if r.Status == envelope.Rejected && exit.PID != 0 {
		r.Status = envelope.Failed // rejected means that no agent ran
		r.Review.Ask("the agent says it rejected the task")
	}
	if said.hold == "" { // what a task waits for is no answer
		g.keepContract(j, said.words, &r)
		g.keepAttachments(j, said.attached, &r)
	}
	g.keepTools(j, &r)
	g.keepBindings(said.unbound, &r)
	g.keepBudget(j, &r)
	g.keepMode(&r)
	setError(&r)
	if r.Output.Summary == "" && (g.binding.Output != Text || r.Status != envelope.OK) {
		r.Output.Summary = summary(r)
	}
	for _, s := range exit.Survivors {
		if s.Killed {
			r.Review.Ask(fmt.Sprintf("the agent left %q running, which was killed", s.Command))
		}
	}
	g.artifacts(j, &r)
	g.provenance(j, &r)
	r.Output.Enforcement = g.enforcement(j, r)
	return r
}

// summary stands for the one an agent did not give (AINL-65).
func summary(r envelope.Result) string {
	if r.Error.Message != "" {
		return r.Error.Message
	}
	return envelope.NoSummary
}

// setError names the kind of a failure that the agent reports (AINL-71).
func setError(r *envelope.Result) {
	if r.Status != envelope.Failed {
		return
	}
	setDefault(&r.Error.Kind, envelope.AgentError)
	if r.Error.Message == "" {
		r.Error.Message = short(r.Output.Summary)
	}
}

// fail turns a result that claims success into an error; a failure keeps its
// own first cause.
func fail(r *envelope.Result, kind envelope.Kind, message string) {
	if r.Status == envelope.Failed && r.Error.Kind != "" {
		return
	}
	r.Status, r.Error = envelope.Failed, envelope.Error{Kind: kind, Message: short(message)}
}

// mode says how strictly a control is held.
func (g *Agent) mode(c envelope.Control) envelope.Mode { return g.opts.Modes[c] }

// object says what is wrong with an answer, as strictly as the control is
// held: the result is an error, or as it is with a person asked to look. What
// the agent said is kept either way.
func (g *Agent) object(r *envelope.Result, c envelope.Control, kind envelope.Kind, message string) {
	if g.mode(c) == envelope.Enforce {
		fail(r, kind, message)
	}
	r.Review.Ask(short(message))
}

// keepBudget has what was spent in the end held against what the run could
// spend (AINL-46). Whoever gave it its meter knows how much that is.
func (g *Agent) keepBudget(j task.Job, r *envelope.Result) {
	if g.mode(envelope.ControlBudget) == envelope.Off {
		return
	}
	if err := overspent(j, *r); err != nil {
		g.object(r, envelope.ControlBudget, envelope.BudgetExceeded, err.Error())
	}
}

// overspent says what a run spent too much, if anybody knows.
func overspent(j task.Job, r envelope.Result) error {
	if r.Cost == nil || j.Meter == nil {
		return nil
	}
	return j.Meter(*r.Cost)
}

// advises reports whether the agent is one that only talks.
func (g *Agent) advises() bool {
	m := g.binding.Manifest
	return m != nil && m.ExecutionMode == envelope.Advisory
}

// keepMode holds what was done against the manifest (AINL-15). What is done is
// done, so it is for a person to look at, and only noted when that is a warning.
func (g *Agent) keepMode(r *envelope.Result) {
	if !g.advises() {
		return
	}
	acted := slices.ContainsFunc(r.Output.Actions, func(a envelope.Action) bool { return a.Status == "executed" })
	const reason = "advisory agent reported an executed action"
	switch mode := g.mode(envelope.ControlExecutionMode); {
	case acted && mode == envelope.Enforce:
		r.Review.Ask(reason)
	case acted && mode == envelope.Warn:
		r.Review.Note(reason)
	}
}
