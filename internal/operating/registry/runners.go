package registry

import (
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// Runners are what the engine and the agents need of programs on other machines.
type Runners struct {
	agent.Runners
	Places   store.Runners
	Bindings func(agent string) []string // the digests of what runners have as an agent
}

func (r *Runners) functions() agent.Runners {
	if r == nil {
		return agent.Runners{}
	}
	return r.Runners
}

func (r *Runners) places() *store.Runners {
	if r == nil {
		return nil
	}
	return &r.Places
}

// isRemote reports whether the runs of an agent are on runners.
func (t *Registry) isRemote(id string) bool { return t.binding(id).Remote != nil }

// Suits reports whether a runner with a name and capabilities may have an agent.
func (t *Registry) Suits(id, runner string, capabilities []string) bool {
	r := t.binding(id).Remote
	return r != nil && r.Suits(runner, capabilities)
}

// Idempotent reports whether the runs of an agent may be repeated.
func (t *Registry) Idempotent(id string) bool { return t.binding(id).Idempotent }

// InWorktree reports whether the runs of an agent work in clones of repositories.
func (t *Registry) InWorktree(id string) bool { return t.binding(id).Worktree }

// Lost returns the outcome of a run on a runner whose end is unknown.
func (t *Registry) Lost(j task.Job, message string) task.Outcome { return t.agents().Lost(j, message) }
