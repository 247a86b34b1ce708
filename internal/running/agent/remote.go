package agent

import (
	"context"
	"errors"
	"path"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/worktree"
)

// Runners run the agents that are on other machines. What they return comes from there, and isn't checked.
type Runners struct {
	Run     func(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome
	Recover func(ctx context.Context, j task.Job) task.Outcome
}

// errNoRunners says that the configuration reaches no runner.
var errNoRunners = errors.New("remote.url is not set, so no runner can be reached")

// runRemote has a runner run a job.
func runRemote(ctx context.Context, g *Agent, j task.Job, started func(runner.Process)) task.Outcome {
	switch {
	case g.opts.Runners.Run == nil:
		return task.Outcome{Void: errNoRunners}
	case !j.At.IsRemote():
		return g.void(j, "the agent had no runners when the run was meant to begin")
	}
	before, ok, err := rounds{g}.clone(j.Task)
	if err != nil {
		return g.notStarted(j, envelope.ContextUnavailable, err.Error())
	}
	if ok {
		j.After = before.Run
	}
	o := g.opts.Runners.Run(ctx, j, started)
	_, unfit := errors.AsType[*worktree.RepositoryError](o.Void)
	if _, large := errors.AsType[*worktree.TooLargeError](o.Void); unfit || large { // trying again doesn't help
		return g.notStarted(j, envelope.SpawnFailed, o.Void.Error())
	}
	return o
}

// recoverRemote waits for a run on a runner that an earlier daemon began.
func recoverRemote(ctx context.Context, g *Agent, j task.Job) task.Outcome {
	if g.opts.Runners.Recover == nil {
		return task.Outcome{Unread: errNoRunners}
	}
	return g.opts.Runners.Recover(ctx, j)
}

// A Remote says which runners on other machines may run an agent. Their own configuration has its command.
type Remote struct {
	Needs   []string // capabilities that the runner has to announce
	Runners []string // patterns of names, as path.Match reads them; empty: every runner
}

// Lost returns the outcome of a run on a runner whose end is unknown.
func (a *Agents) Lost(j task.Job, message string) task.Outcome {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		g = a.removedAgent(j)
	}
	return g.lost(j, task.Exit{Code: -1, Cause: task.CauseLost}, &meter{job: j}, message)
}

// Suits reports whether a runner with a name and capabilities may have the agent.
func (r Remote) Suits(name string, capabilities []string) bool {
	for _, need := range r.Needs {
		if !slices.Contains(capabilities, need) {
			return false
		}
	}
	return len(r.Runners) == 0 || slices.ContainsFunc(r.Runners, func(text string) bool {
		match, _ := path.Match(text, name)
		return match
	})
}

// checkRemote refuses what only a program of this machine has.
func (b Binding) checkRemote() *FieldError {
	switch {
	case b.Profile != "" || b.Permission != "" || b.Model != "":
		return wrong("profile", "profile, permission and model belong into the configuration of the runner")
	case len(b.Command) > 0 || b.Worker != nil || b.Inbox != nil || b.Service != nil:
		return wrong("remote", "an agent has exec, worker, inbox, http, a2a, mcp or remote, one of them")
	case b.Sandbox.Active():
		return wrong("sandbox", "belongs into the configuration of the runner")
	case len(b.Env) > 0:
		return wrong("exec.env", "belongs into the configuration of the runner")
	case len(b.Copy) > 0 || len(b.Setup) > 0:
		return wrong("exec.worktree", "copy and setup belong into the configuration of the runner; write true")
	}
	return nil
}
