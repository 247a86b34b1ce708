package agent

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// complete sets the fields that mailboxd sets, and checks the result against the task's
// contract and the manifest.
func (g *Agent) complete(j task.Job, exit task.Exit, reply answer) envelope.Result {
	r := reply.result
	r.TaskID, r.AgentID = j.Task.ID, g.binding.ID
	r.Time = envelope.TimeUsed{Started: exit.Started, Finished: exit.Finished, Wall: exit.Wall}
	if r.Status == envelope.Rejected && exit.PID != 0 {
		r.Status = envelope.Failed // rejected means that no agent ran
		r.Review.Ask("the agent says it rejected the task")
	}
	if reply.hold == "" { // a waiting task has no answer to check
		g.checkContract(j, reply.object, &r)
		g.checkStep(j, reply.object, &r)
		g.checkVersion(&r)
		g.checkAttachments(j, reply.attached, &r)
	}
	g.checkTools(j, &r)
	g.noteUnknownTools(j, &r)
	g.checkCalls(j, reply.called, &r)
	g.checkBindings(reply.unbound, &r)
	g.checkBudget(j, &r)
	g.checkMode(&r)
	setError(&r)
	r.Error.Message = g.withoutSecrets(r.Error.Message)
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
	envelope.MarkSignature(&r, j.Task)
	r.Output.Enforcement = g.enforcement(j, exit, r)
	return r
}

// summary returns a summary for an agent that gave none (AINL-65).
func summary(r envelope.Result) string {
	if r.Error.Message != "" {
		return r.Error.Message
	}
	return envelope.NoSummary
}

// setError sets the kind of a failure that the agent reports (AINL-71).
func setError(r *envelope.Result) {
	if r.Status != envelope.Failed {
		return
	}
	setDefault(&r.Error.Kind, envelope.AgentError)
	if r.Error.Message == "" {
		r.Error.Message = short(r.Output.Summary)
	}
}

// fail turns a successful result into an error; a failed result keeps its first cause.
func fail(r *envelope.Result, kind envelope.Kind, message string) {
	if r.Status == envelope.Failed && r.Error.Kind != "" {
		return
	}
	r.Status, r.Error = envelope.Failed, envelope.Error{Kind: kind, Message: short(message)}
}

// mode returns the mode of a control.
func (g *Agent) mode(c envelope.Control) envelope.Mode { return g.opts.Modes[c] }

// object records a violation in an answer. If the control is enforced, the result becomes
// an error; otherwise a person is asked to review it. The agent's content is kept in both
// cases.
func (g *Agent) object(r *envelope.Result, c envelope.Control, kind envelope.Kind, message string) {
	if g.mode(c) == envelope.Enforce {
		fail(r, kind, message)
	}
	r.Review.Ask(short(message))
}

// checkBudget compares the final spending with the run's limit (AINL-46). The job's Meter
// knows the limit.
func (g *Agent) checkBudget(j task.Job, r *envelope.Result) {
	if g.mode(envelope.ControlBudget) == envelope.Off {
		return
	}
	if err := overspent(j, *r); err != nil {
		g.object(r, envelope.ControlBudget, envelope.BudgetExceeded, err.Error())
	}
}

// overspent returns the error of a run that spent too much; nil if it didn't or there is no
// meter.
func overspent(j task.Job, r envelope.Result) error {
	if r.Cost == nil || j.Meter == nil {
		return nil
	}
	return j.Meter(*r.Cost)
}

// advises reports whether the agent is advisory only.
func (g *Agent) advises() bool {
	m := g.binding.Manifest
	return m != nil && m.ExecutionMode == envelope.Advisory
}

// checkMode checks the reported actions against the manifest's execution mode (AINL-15).
// They can't be undone, so a person has to review them; in warn mode they are only noted.
func (g *Agent) checkMode(r *envelope.Result) {
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
