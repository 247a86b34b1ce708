package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schema"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/worktree"
)

// Options are shared by all agents.
type Options struct {
	Roots   []string                           // directories for artifacts, besides the run directory
	Version string                             // of mailboxd, for runtime_version
	Schemas *schema.Set                        // for checking answers; nil: the built-in ones
	Modes   map[envelope.Control]envelope.Mode // a missing control is enforced

	Workflows schema.Workflows // whose steps say what answers have to be

	Own OwnDirs // in which no task has an agent work

	// CheckRef checks a file URI of a task, as mailbox.Box.CheckRef does; nil: no check.
	CheckRef func(uri string) error

	// FindRef returns the path of a file URI for a sandbox, as mailbox.Box.FindRef does; nil:
	// a sandbox has no files of tasks.
	FindRef func(uri string) (string, error)

	Artifacts *artifact.Store // where runs publish files; nil: nowhere

	Worktrees worktree.Store // of the clones that runs work in

	// Received returns what came with the job of a run, for clones at a runner; nil: not a runner.
	Received func(run string) (Received, bool)

	// Earlier looks up a task whose session another one continues; nil: no check, for commands
	// that don't know the tasks. Sessions has those in use, also of earlier configurations.
	Earlier  func(envelope.ID) (Earlier, error)
	Sessions *Sessions

	isAgent func(id string) bool

	// Questions makes a CAP message to the requester that ends with a question mark wait
	// for a reply. It becomes the answer if none comes.
	Questions bool

	// Runners run the agents with a Remote; nil: no runner can be reached.
	Runners Runners

	// Run and Await run processes and wait for them. Nil: runner.Run, in this process, and
	// runner.Await.
	Run       func(ctx context.Context, s runner.Spec, started func(runner.Process)) (task.Exit, error)
	Await     func(ctx context.Context, dir string) (task.Exit, bool, error)
	WorkerDir string                        // parent of the workers' directories; "": the system's temporary one
	Notice    func(agent string, err error) // receives problems of workers and worktrees; nil: they are ignored
}

// Agents are the agents of one configuration. They never change; a new configuration makes
// new ones. The zero value has none.
type Agents struct {
	byID map[string]*Agent
	opts Options
}

// New makes the agents and checks all that can be checked before a run. An error names the
// agent and the element: agents[1] "x": exec.command[2]: ...
func New(bindings []Binding, opts Options) (*Agents, error) {
	if opts.Run == nil {
		opts.Run = runner.Run
	}
	if opts.Schemas == nil {
		var err error
		if opts.Schemas, err = schema.Load(""); err != nil {
			return nil, err
		}
	}
	a := &Agents{byID: map[string]*Agent{}}
	opts.isAgent = func(id string) bool { return a.byID[id] != nil }
	a.opts = opts
	folded := map[string]string{}
	for i, b := range bindings {
		g, err := newAgent(b, opts)
		if err != nil {
			return nil, fmt.Errorf("agents[%d] %q: %w", i, b.ID, err)
		}
		// People, and file systems that fold case, would confuse ids that differ in case
		// only.
		flush := strings.ToLower(b.ID)
		if other, ok := folded[flush]; ok {
			return nil, fmt.Errorf("agents[%d] %q: id: is that of another agent, %q", i, b.ID, other)
		}
		folded[flush] = b.ID
		a.byID[b.ID] = g
	}
	return a, nil
}

// Lookup returns the agent with exactly this id (AINL-11).
func (a *Agents) Lookup(id string) (*Agent, bool) {
	g, ok := a.byID[id]
	return g, ok
}

// IDs returns the ids of all agents, sorted.
func (a *Agents) IDs() []string {
	return slices.Sorted(maps.Keys(a.byID))
}

// Run runs the job with its task's agent; see Agent.Run. With an unknown agent, it runs
// nothing.
func (a *Agents) Run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		return a.removedAgent(j).notStarted(j, envelope.UnknownAgent, fmt.Sprintf("no agent %q is configured", j.Task.Agent))
	}
	return g.Run(ctx, j, started)
}

// Recover returns the outcome of a run of the task's agent, which may be gone from the
// configuration; see Agent.Recover.
func (a *Agents) Recover(ctx context.Context, j task.Job) task.Outcome {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		g = a.removedAgent(j)
	}
	if j.At.IsRemote() {
		return recoverRemote(ctx, g, j)
	}
	return g.Recover(ctx, j)
}

// removedAgent stands for an agent that is no longer configured.
func (a *Agents) removedAgent(j task.Job) *Agent {
	return &Agent{binding: Binding{ID: j.Task.Agent}.withDefaults(), opts: a.opts}
}
