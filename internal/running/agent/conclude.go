package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	events "mailboxd/internal/running/transcript"
	"mailboxd/internal/sandboxing/sandbox"
)

// notStarted returns the outcome of a job for which no agent ran.
func (g *Agent) notStarted(j task.Job, kind envelope.Kind, message string) task.Outcome {
	exit := task.Exit{Code: -1}
	r := envelope.Result{Status: envelope.Rejected, Error: envelope.Error{Kind: kind, Message: short(message)}}
	return task.Outcome{Result: g.complete(j, exit, answer{result: r}), Exit: exit}
}

// noProcess returns the outcome of a job whose process couldn't be started. A retry may
// work.
func (g *Agent) noProcess(j task.Job, err error) task.Outcome {
	message := fmt.Sprintf("the agent's command cannot be started: %v", err)
	if spawn, ok := errors.AsType[*runner.SpawnError](err); ok && spawn.Setup {
		message = fmt.Sprintf("%s cannot be started: %v", setupName, err)
	}
	if _, missing := os.Stat(g.binding.Cwd); g.binding.Cwd != "" && errors.Is(missing, fs.ErrNotExist) {
		message += fmt.Sprintf("; create the directory, or correct exec.cwd of agent %q", g.binding.ID)
	}
	o := g.notStarted(j, envelope.SpawnFailed, message)
	o.Retry = true
	return o
}

// void returns the outcome of a job that the daemon ended before its start. The job starts
// afresh.
func (g *Agent) void(j task.Job, message string) task.Outcome {
	o := g.notStarted(j, envelope.RunLost, message)
	o.Exit.Cause, o.Retry = task.CauseInterrupted, true
	return o
}

// lost returns the outcome of a run with an unknown end.
func (g *Agent) lost(j task.Job, exit task.Exit, m *meter, message string) task.Outcome {
	m.broker.Finish()
	reply := g.answer(j)
	if err := unread(reply, m); err != nil {
		return task.Outcome{Exit: exit, Unread: err}
	}
	m.add(&reply.result)
	failure := g.binding.serviceFailure(j, reply, envelope.Error{Kind: envelope.RunLost, Message: short(message)})
	return task.Outcome{Result: g.complete(j, exit, failed(reply, failure)), Exit: exit, Retry: g.mayRepeat(j, reply, envelope.RunLost)}
}

// unread returns the error of a part that couldn't be read for a reason outside the agent;
// nil: none.
func unread(reply answer, m *meter) error {
	if runner.Passing(reply.err) {
		return reply.err
	}
	return m.unread
}

// mayRepeat reports whether a dead run may be repeated: the agent is idempotent and hasn't
// answered, or its service can be asked for what it has. Reaching a limit isn't a death: the next
// run would only cost the same.
func (g *Agent) mayRepeat(j task.Job, reply answer, kind envelope.Kind) bool {
	dead := kind == envelope.RunLost || kind == envelope.AgentCrashed
	answered := reply.err == nil
	if g.binding.Output == Text { // any text is valid, so a text that was cut short looks like an answer
		answered = kind != envelope.RunLost && !reply.empty()
	}
	return (g.binding.Idempotent || g.binding.mayAskAgain(j)) && dead && !answered
}

// conclude makes the outcome of a run from its exit and its answer.
func (g *Agent) conclude(j task.Job, exit task.Exit, m *meter) task.Outcome {
	m.broker.Finish()
	if exit.Cause == task.CauseSandbox {
		return g.notEnclosed(j, exit)
	}
	if exit.Setup {
		return g.concludeSetup(j, exit)
	}
	if o, waited := g.concludeWait(j, exit, m); waited {
		return o
	}
	if exit.Cause == task.CauseInterrupted && exit.Reason == errExitOverdue.Error() {
		exit.Cause = task.CauseExitTimeout
	}
	if exit.Cause == task.CauseInterrupted && exit.Reason == errNoProgress.Error() {
		exit.Cause = task.CauseIdleTimeout
	}
	reply := g.explain(j, exit, g.answer(j))
	if err := unread(reply, m); err != nil {
		return task.Outcome{Exit: exit, Unread: err}
	}
	m.add(&reply.result)
	failure := g.failure(j, exit)
	if words := g.waiting(j, exit, m); words != "" {
		failure.Message = short(failure.Message + "; at the end, " + words)
	}
	failure = g.binding.serviceFailure(j, reply, failure)
	over, again := overspent(j, reply.result), exit.Cause == "" && exit.Code == tempFail
	switch {
	case m.calls.Violation() != nil:
		failure = envelope.Error{Kind: envelope.ToolViolation, Message: short("the agent was ended: " + m.calls.Violation().Error())}
	case exit.Cause == task.CauseInterrupted && m.overBudget != nil:
		failure = envelope.Error{Kind: envelope.BudgetExceeded, Message: short(m.overBudget.Error() + " and was ended")}
	case again && over != nil:
		failure = envelope.Error{Kind: envelope.BudgetExceeded, Message: short(over.Error())}
	}
	switch {
	case failure.Kind == "" && reply.err != nil:
		reply = failed(reply, envelope.Error{Kind: reply.kind, Message: reply.err.Error() + stderrTail(j)})
	case failure.Kind == "":
		setDefault(&reply.result.Status, envelope.OK)
	case failure.Kind == envelope.AgentCrashed && exit.Signal == "" && reply.admitsFailure():
		// The answer itself admits a failure, and the exit status agrees.
	default:
		reply = failed(reply, failure)
	}
	o := task.Outcome{
		Result: g.complete(j, exit, reply),
		Exit:   exit,
		Retry:  again || reply.again && failure.Kind == "" || g.mayRepeat(j, reply, failure.Kind),
	}
	addMessages(&o, reply)
	g.addUnanswered(&o, j, reply)
	applyBlocker(&o, reply, over != nil)
	o.Retry = o.Retry && over == nil // AINL-46
	return o
}

// waiting returns what the program of a run that reached a limit of time last said of its
// provider; "" for nothing.
func (g *Agent) waiting(j task.Job, exit task.Exit, m *meter) string {
	switch {
	case m.output == nil:
	case exit.Cause == task.CauseTimeout, exit.Cause == task.CauseDeadline:
		return m.output.waiting
	case exit.Cause == task.CauseIdleTimeout && m.output.waiting == "":
		tail, _, _ := readStderrEnd(j.Dir, maxErrorLog) // an error message works without it
		return events.LatestError(tail)
	case exit.Cause == task.CauseIdleTimeout:
		return m.output.waiting
	}
	return ""
}

// maxErrorLog is how much of the end of standard error is read for attempts to reach a provider,
// in bytes.
const maxErrorLog = 16 << 10

// admitsFailure reports whether the answer says that the work isn't complete.
func (a answer) admitsFailure() bool {
	return a.err == nil && a.hold == "" && slices.Contains(shortOfOK, a.result.Status)
}

var shortOfOK = []envelope.Status{envelope.Failed, envelope.Partial, envelope.Stopped, envelope.Rejected}

// empty reports whether the answer has no content to keep.
func (a answer) empty() bool {
	o := a.result.Output
	return a.err != nil || o.Summary == "" && len(o.Actions) == 0 && o.Extra == nil
}

// failed returns the answer of a failed run. The agent's content is kept for a review.
func failed(reply answer, failure envelope.Error) answer {
	r := &reply.result
	switch {
	case reply.empty():
	case failure.Kind == envelope.RunLost: // or cancelled; the run doesn't know
		r.Review.Ask("the agent may not have said all: its run was cut short")
	default:
		r.Review.Ask("the agent answered, but its run failed: " + string(failure.Kind))
	}
	r.Status, r.Error = envelope.Failed, failure
	reply.messages, reply.hold = nil, ""
	return reply
}

// failure returns the error in the way the process ended; the zero value is none.
func (g *Agent) failure(j task.Job, exit task.Exit) envelope.Error {
	b := g.binding
	switch exit.Cause {
	case task.CauseTimeout:
		return envelope.Error{Kind: envelope.Timeout, Message: fmt.Sprintf("the agent was not done after %v and was ended", g.timeout(j))}
	case task.CauseIdleTimeout:
		if exit.Reason == errNoProgress.Error() {
			return envelope.Error{Kind: envelope.IdleTimeout, Message: fmt.Sprintf("the model made no progress for %v and the run was ended", b.IdleTimeout)}
		}
		return envelope.Error{Kind: envelope.IdleTimeout, Message: fmt.Sprintf("the agent printed nothing for %v and was ended", b.IdleTimeout)}
	case task.CauseDeadline:
		return envelope.Error{Kind: envelope.DeadlineExceeded, Message: "the agent was not done at the deadline and was ended"}
	case task.CauseLease:
		return envelope.Error{Kind: envelope.RunLost, Message: "the runner did not reach the owner until the lease of the run ended, " +
			"and another run may have begun"}
	case task.CauseOutputTooLarge:
		return envelope.Error{Kind: envelope.OutputTooLarge, Message: fmt.Sprintf("the agent printed more than %d bytes, or wrote more to its result file, and was ended", b.MaxOutput)}
	case task.CauseMemory:
		return envelope.Error{Kind: envelope.OutOfMemory, Message: fmt.Sprintf("the agent used more memory than the %s of its sandbox.memory, and the kernel ended it", sandbox.FormatSize(b.Sandbox.Memory)) + stderrTail(j)}
	case task.CauseExitTimeout:
		return envelope.Error{Kind: envelope.ExitTimeout, Message: fmt.Sprintf("the agent had answered, did not exit for %v and was ended", b.ExitTimeout)}
	case task.CauseLost:
		return envelope.Error{Kind: envelope.RunLost, Message: "the keeper was gone when the agent ended, so its end is unknown"}
	case task.CauseInterrupted:
		return envelope.Error{Kind: envelope.RunLost, Message: "the agent was ended before it was done: " + exit.Reason}
	}
	switch {
	case exit.Signal != "":
		return envelope.Error{Kind: envelope.AgentCrashed, Message: "the agent was ended by " + exit.Signal + stderrTail(j)}
	case exit.Code != 0:
		return envelope.Error{Kind: envelope.AgentCrashed, Message: fmt.Sprintf("the agent exited with status %d", exit.Code) + stderrTail(j)}
	}
	return envelope.Error{}
}
