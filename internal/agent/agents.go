package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/schema"
	"mailboxd/internal/task"
)

// Options are what all agents share.
type Options struct {
	Roots   []string                           // directories, besides the run's, in which an agent's artifacts may lie
	Version string                             // ours, for the results' runtime_version
	Schemas *schema.Set                        // what answers can be held against; nil: what is built in
	Modes   map[envelope.Control]envelope.Mode // how strictly they are; what is not there is enforced

	// CheckRef says what is wrong with a file URI that a task names, as
	// mailbox.Box.CheckRef does; nil: nothing ever is.
	CheckRef func(uri string) error

	// Questions says that a message of CAP to the requester that ends with a question
	// mark waits for a reply, and is the answer only if there is none.
	Questions bool

	// Run and Await are where processes run: nil is runner.Run, in this process,
	// and runner.Await.
	Run       func(ctx context.Context, s runner.Spec, started func(runner.Process)) (task.Exit, error)
	Await     func(ctx context.Context, dir string) (task.Exit, bool, error)
	WorkerDir string                        // where worker processes have their directories; "": the system's for temporary ones
	Notice    func(agent string, err error) // is told what goes wrong with workers; nil: nobody is
}

// Agents are the agents of one configuration. They never change: a new
// configuration makes new ones. The zero value has none.
type Agents struct {
	byID map[string]*Agent
	opts Options
}

// New makes the agents and checks everything that can be checked before they
// run. An error names the agent and the element: agents[1] "x": exec.command[2]: ...
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
	a := &Agents{byID: map[string]*Agent{}, opts: opts}
	folded := map[string]string{}
	for i, b := range bindings {
		g, err := newAgent(b, opts)
		if err != nil {
			return nil, fmt.Errorf("agents[%d] %q: %w", i, b.ID, err)
		}
		// Ids that differ in case alone would be taken for each other by people,
		// and by file systems that fold case.
		fold := strings.ToLower(b.ID)
		if other, ok := folded[fold]; ok {
			return nil, fmt.Errorf("agents[%d] %q: id: is that of another agent, %q", i, b.ID, other)
		}
		folded[fold] = b.ID
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

// Run runs the job with the agent its task names; see Agent.Run. An agent that
// is no longer there runs nothing.
func (a *Agents) Run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		return a.stranger(j).notStarted(j, envelope.UnknownAgent, fmt.Sprintf("no agent %q is configured", j.Task.Agent))
	}
	return g.Run(ctx, j, started)
}

// Recover returns what became of a run of the agent its task names, also of an
// agent that is no longer there; see Agent.Recover.
func (a *Agents) Recover(ctx context.Context, j task.Job) task.Outcome {
	g, ok := a.byID[j.Task.Agent]
	if !ok {
		g = a.stranger(j)
	}
	return g.Recover(ctx, j)
}

// stranger stands for an agent that was taken out of the configuration.
func (a *Agents) stranger(j task.Job) *Agent {
	return &Agent{binding: Binding{ID: j.Task.Agent}.withDefaults(), opts: a.opts}
}
