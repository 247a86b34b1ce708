package agent

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// notStarted is the outcome of a job for which no agent ran.
func (g *Agent) notStarted(j task.Job, kind envelope.Kind, message string) task.Outcome {
	exit := task.Exit{Code: -1}
	r := envelope.Result{Status: envelope.Rejected, Error: envelope.Error{Kind: kind, Message: short(message)}}
	return task.Outcome{Result: g.complete(j, exit, answer{result: r}), Exit: exit}
}

// noProcess is the outcome of a job whose process could not be started, which
// may be better another time.
func (g *Agent) noProcess(j task.Job, err error) task.Outcome {
	o := g.notStarted(j, envelope.SpawnFailed, fmt.Sprintf("the agent's command cannot be started: %v", err))
	o.Retry = true
	return o
}

// void is the outcome of a job that we ended before anything was started: it
// starts afresh.
func (g *Agent) void(j task.Job, message string) task.Outcome {
	o := g.notStarted(j, envelope.RunLost, message)
	o.Exit.Cause, o.Retry = task.CauseInterrupted, true
	return o
}

// lost is the outcome of a run of which nobody knows how it ended.
func (g *Agent) lost(j task.Job, exit task.Exit, m *meter, message string) task.Outcome {
	said := g.answer(j)
	if err := unread(said, m); err != nil {
		return task.Outcome{Exit: exit, Unread: err}
	}
	m.add(&said.result)
	failure := envelope.Error{Kind: envelope.RunLost, Message: short(message)}
	return task.Outcome{Result: g.complete(j, exit, failed(said, failure)), Exit: exit, Retry: g.repeats(said, envelope.RunLost)}
}

// unread is why a part of what a run left could not be read, when that has
// nothing to do with the agent; nil: all was read, or is not there to be read.
func unread(said answer, m *meter) error {
	if runner.Passing(said.err) {
		return said.err
	}
	return m.unread
}

// repeats reports whether a run that is dead may be made again, because its
// agent does no harm by it and has not answered. A limit that was reached is no
// death, but a verdict: the next run would only cost as much.
func (g *Agent) repeats(said answer, kind envelope.Kind) bool {
	dead := kind == envelope.RunLost || kind == envelope.AgentCrashed
	answered := said.err == nil
	if g.binding.Output == Text { // any text is one, so one that was cut short is not to be told from an answer
		answered = kind != envelope.RunLost && !said.empty()
	}
	return g.binding.Idempotent && dead && !answered
}

// conclude makes the outcome of a run from how it ended and what was said.
func (g *Agent) conclude(j task.Job, exit task.Exit, m *meter) task.Outcome {
	if exit.Cause == task.CauseInterrupted && exit.Reason == errOverstays.Error() {
		exit.Cause = task.CauseExitTimeout
	}
	said := g.explain(j, exit, g.answer(j))
	if err := unread(said, m); err != nil {
		return task.Outcome{Exit: exit, Unread: err}
	}
	m.add(&said.result)
	failure := g.failure(j, exit)
	over, again := overspent(j, said.result), exit.Cause == "" && exit.Code == tempFail
	switch {
	case exit.Cause == task.CauseInterrupted && m.over != nil:
		failure = envelope.Error{Kind: envelope.BudgetExceeded, Message: short(m.over.Error() + " and was ended")}
	case again && over != nil:
		failure = envelope.Error{Kind: envelope.BudgetExceeded, Message: short(over.Error())}
	}
	switch {
	case failure.Kind == "" && said.err != nil:
		said = failed(said, envelope.Error{Kind: said.kind, Message: said.err.Error() + lastWords(j)})
	case failure.Kind == "":
		setDefault(&said.result.Status, envelope.OK)
	case failure.Kind == envelope.AgentCrashed && exit.Signal == "" && said.ownsUp():
		// It says itself that it did not do it all, and its exit status agrees.
	default:
		said = failed(said, failure)
	}
	o := task.Outcome{
		Result: g.complete(j, exit, said),
		Exit:   exit,
		Retry:  again || g.repeats(said, failure.Kind),
	}
	addMessages(&o, said)
	g.addUnanswered(&o, j, said)
	addTrouble(&o, said.trouble)
	o.Retry = o.Retry && over == nil // AINL-46
	return o
}

// ownsUp reports whether the agent's own word is that it did not do it all.
func (a answer) ownsUp() bool {
	return a.err == nil && a.hold == "" && slices.Contains(shortOfOK, a.result.Status)
}

var shortOfOK = []envelope.Status{envelope.Failed, envelope.Partial, envelope.Stopped, envelope.Rejected}

// empty reports whether there is nothing in the answer to keep.
func (a answer) empty() bool {
	o := a.result.Output
	return a.err != nil || o.Summary == "" && len(o.Actions) == 0 && o.Extra == nil
}

// failed is the answer of a run that went wrong. What the agent said is kept,
// for a person to judge.
func failed(said answer, failure envelope.Error) answer {
	r := &said.result
	switch {
	case said.empty():
	case failure.Kind == envelope.RunLost: // or cancelled, which is not ours to know
		r.Review.Ask("the agent may not have said all: its run was cut short")
	default:
		r.Review.Ask("the agent answered, but its run failed: " + string(failure.Kind))
	}
	r.Status, r.Error = envelope.Failed, failure
	said.said, said.hold = nil, ""
	return said
}

// failure says what was wrong with how the process ended, if anything.
func (g *Agent) failure(j task.Job, exit task.Exit) envelope.Error {
	b := g.binding
	switch exit.Cause {
	case task.CauseTimeout:
		return envelope.Error{Kind: envelope.Timeout, Message: fmt.Sprintf("the agent was not done after %v and was ended", g.timeout(j))}
	case task.CauseIdleTimeout:
		return envelope.Error{Kind: envelope.IdleTimeout, Message: fmt.Sprintf("the agent printed nothing for %v and was ended", b.IdleTimeout)}
	case task.CauseDeadline:
		return envelope.Error{Kind: envelope.DeadlineExceeded, Message: "the agent was not done at the deadline and was ended"}
	case task.CauseOutputTooLarge:
		return envelope.Error{Kind: envelope.OutputTooLarge, Message: fmt.Sprintf("the agent printed more than %d bytes, or wrote more to its result file, and was ended", b.MaxOutput)}
	case task.CauseExitTimeout:
		return envelope.Error{Kind: envelope.ExitTimeout, Message: fmt.Sprintf("the agent had answered, did not exit for %v and was ended", b.ExitTimeout)}
	case task.CauseLost:
		return envelope.Error{Kind: envelope.RunLost, Message: "the keeper was gone when the agent ended, so nobody knows how it ended"}
	case task.CauseInterrupted:
		return envelope.Error{Kind: envelope.RunLost, Message: "the agent was ended before it was done: " + exit.Reason}
	}
	switch {
	case exit.Signal != "":
		return envelope.Error{Kind: envelope.AgentCrashed, Message: "the agent was ended by " + exit.Signal + lastWords(j)}
	case exit.Code != 0:
		return envelope.Error{Kind: envelope.AgentCrashed, Message: fmt.Sprintf("the agent exited with status %d", exit.Code) + lastWords(j)}
	}
	return envelope.Error{}
}
