package agent

import (
	"bytes"
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

// setupName names the setup in messages, as the configuration does.
const setupName = "exec.worktree.setup"

// setup returns the command that prepares the clone of a run; nil for none. It is not repeated in a
// clone that an earlier run prepared.
func (g *Agent) setup(j task.Job) ([]string, error) {
	if len(g.binding.Setup) == 0 || !g.inWorktree(j.Task) {
		return nil, nil
	}
	c, ok, err := g.opts.Worktrees.Open(j.RunID)
	if err != nil || !ok || c.Prepared {
		return nil, err
	}
	return slices.Clone(g.binding.Setup), nil
}

// addSetupProgram shows a sandbox the program of the setup.
func addSetupProgram(s *runner.Spec, r *sandbox.Run) error {
	if s.Setup.Argv == nil {
		return nil
	}
	program, err := findProgram(s.Setup.Argv[0])
	if err != nil {
		return &runner.SpawnError{Command: s.Setup.Argv[0], Err: err, Setup: true}
	}
	s.Setup.Argv[0] = program
	r.Read = append(r.Read, programPaths(program, *r)...)
	return nil
}

// setupNetwork returns the arguments of the gate of a setup, which is that of the run unless the
// setup has hosts of its own.
func (g *Agent) setupNetwork(s *runner.Spec, r *sandbox.Run, ofRun []string) ([]string, error) {
	own := g.binding.Sandbox.SetupNetwork
	switch {
	case s.Setup.Argv == nil:
		return nil, nil
	case own == nil:
		return ofRun, nil
	}
	return gateOf(r, own, sandbox.UnneededHosts{})
}

// concludeSetup makes the outcome of a run that ended in its setup.
func (g *Agent) concludeSetup(j task.Job, exit task.Exit) task.Outcome {
	failure := g.setupFailure(j, exit)
	failure.Message += "; the agent was not started"
	reply := answer{result: envelope.Result{Status: envelope.Failed, Error: failure}, err: errNothing}
	return task.Outcome{
		Result: g.complete(j, exit, reply), Exit: exit,
		Retry: failure.Kind == envelope.RunLost && g.mayRepeat(j, reply, failure.Kind),
	}
}

// setupFailure returns the error in the way that a setup ended.
func (g *Agent) setupFailure(j task.Job, exit task.Exit) envelope.Error {
	said := setupTail(j)
	failure := func(kind envelope.Kind, format string, args ...any) envelope.Error {
		return envelope.Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	switch exit.Cause {
	case task.CauseNotStarted:
		return failure(envelope.SpawnFailed, "the agent's command cannot be started after %s: %s", setupName, exit.Reason)
	case task.CauseTimeout:
		return failure(envelope.Timeout, "%s was not done after %v and was ended%s", setupName, g.timeout(j), said)
	case task.CauseDeadline:
		return failure(envelope.DeadlineExceeded, "%s was not done at the deadline and was ended%s", setupName, said)
	case task.CauseLease:
		return failure(envelope.RunLost, "%s was ended, since the runner did not reach the owner until the lease of the run ended", setupName)
	case task.CauseOutputTooLarge:
		return failure(envelope.OutputTooLarge, "%s printed more than %d bytes and was ended", setupName, g.binding.MaxOutput)
	case task.CauseMemory:
		limit := sandbox.FormatSize(g.binding.Sandbox.Memory)
		return failure(envelope.OutOfMemory, "%s used more memory than the %s of sandbox.memory%s", setupName, limit, said)
	case task.CauseInterrupted:
		return failure(envelope.RunLost, "%s was ended before it was done: %s", setupName, exit.Reason)
	}
	if exit.Signal != "" {
		return failure(envelope.SpawnFailed, "%s was ended by %s%s", setupName, exit.Signal, said)
	}
	return failure(envelope.SpawnFailed, "%s exited with status %d%s", setupName, exit.Code, said)
}

// setupTail quotes the last line that a setup printed; "" for none.
func setupTail(j task.Job) string {
	text, _, err := readEnd(j.Dir, runner.SetupFile, maxQuote)
	if err != nil {
		return "" // an error message works without it
	}
	text = bytes.TrimSpace(text)
	line := string(dialect.Plain(bytes.TrimSpace(text[bytes.LastIndexAny(text, "\r\n")+1:])))
	if line == "" {
		return ""
	}
	return fmt.Sprintf("; its last line: %q", line)
}
