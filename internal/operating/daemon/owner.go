package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/registry"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/owner"
	"mailboxd/internal/stores/ledger"
)

// RunnersDir is the directory of what is known of runners, below the state directory.
const RunnersDir = "runners"

// openOwner makes the owner of runners, unless the configuration has none. The functions of the engine are set
// by connectOwner.
func (r *resources) openOwner(cfg config.Config, remote config.Remote, log zerolog.Logger) (err error) {
	if remote.URL == "" {
		return nil
	}
	credentials := carrier.Credentials{Root: remote.Name}
	if remote.Credentials != "" {
		if credentials, err = carrier.ReadCredentials(cfg.Resolve(remote.Credentials)); err != nil {
			return fmt.Errorf("remote.credentials: %w", err)
		}
		credentials.Root = cmp.Or(credentials.Root, remote.Name)
	}
	opts := owner.Options{
		Connect: carrier.Options{URL: remote.URL, Credentials: credentials},
		Dir:     filepath.Join(r.state.Path(), RunnersDir), Lease: remote.Lease, Unreachable: remote.Unreachable,
		Suits:      func(agent, runner string, has []string) bool { return r.registry.Suits(agent, runner, has) },
		Idempotent: func(agent string) bool { return r.registry.Idempotent(agent) },
		Worktree:   func(agent string) bool { return r.registry.InWorktree(agent) },
		Lost:       func(j task.Job, message string) task.Outcome { return r.registry.Lost(j, message) },
		Past:       r.pastOf,
		LateDir:    r.lateDir,
		Changed:    func() { r.engine().Queue.WakeOne() },
		Fits:       func(tasks []int64) { r.engine().RunnerHasRoom(tasks) },
		Fenced:     r.recordFenced,
		Closed:     r.recordRefused,
		Worktrees:  r.worktrees, Artifacts: r.artifacts, Log: log,
	}
	r.owner, err = owner.New(opts)
	return err
}

// runners returns what the engine and the agents need of runners; nil without an owner.
func (r *resources) runners() *registry.Runners {
	o := r.owner
	if o == nil {
		return nil
	}
	return &registry.Runners{
		Runners:  agent.Runners{Run: o.Run, Recover: o.Recover},
		Places:   store.Runners{Free: o.Free, Take: o.Take, Assign: o.Assign, Held: o.Held, Drop: o.Drop, Settled: o.Settled},
		Bindings: o.Bindings,
	}
}

// known returns what the owner knows of runners, for the API.
func (r *resources) known() []client.Runner {
	if r.owner == nil {
		return nil
	}
	all := []client.Runner{}
	for _, s := range r.owner.Runners() {
		view := client.Runner{
			Name: s.Name, Status: client.RunnerStatus(s.Status), Reason: s.Reason, Next: s.Next, Version: s.Version, Incarnation: s.Incarnation,
			Slots: s.Slots, Running: s.Running, Agents: []client.RunnerAgent{}, Capabilities: s.Capabilities, Sandbox: s.Sandbox, Seen: s.Seen,
			ClockOff: s.ClockOff.Seconds(),
		}
		for _, a := range s.Agents {
			agent := client.RunnerAgent{ID: a.ID, Digest: a.Digest, Concurrency: a.Concurrency, MaxSensitivity: a.MaxSensitivity}
			view.Agents = append(view.Agents, agent)
		}
		for _, run := range s.Runs {
			view.Runs = append(view.Runs, client.RunnerRun{Task: run.Task, Agent: run.Agent, State: run.State(), Since: run.Began})
		}
		all = append(all, view)
	}
	return all
}

// addControls adds to a table of the API what changes runners.
func (r *resources) addControls(t api.RunnerTable) api.RunnerTable {
	if r.owner == nil {
		return t
	}
	t.Drain = func(ctx context.Context, name string, on bool, by core.By) error {
		kind := task.KindRunnerDrained
		if !on {
			kind = task.KindRunnerResumed
		}
		if err := r.owner.Drain(name, on); err != nil {
			return err
		}
		return r.recordChange(ctx, kind, name, by)
	}
	t.Remove = func(ctx context.Context, name string, by core.By) error {
		if err := r.owner.Remove(name); err != nil {
			return err
		}
		return r.recordChange(ctx, task.KindRunnerRemoved, name, by)
	}
	t.Abandon = func(_ context.Context, id envelope.ID, by core.By) error { return r.owner.Abandon(id, by.String()) }
	return t
}

// recordChange records what a person changed about a runner.
func (r *resources) recordChange(ctx context.Context, kind task.Kind, runner string, by core.By) error {
	return r.engine().RecordRunner(ctx, kind, runner, by.Data())
}

// recordRefused records that a runner isn't served any more.
func (r *resources) recordRefused(runner, reason string) {
	err := r.engine().RecordRunner(context.Background(), task.KindRunnerRefused, runner, map[string]any{"reason": reason})
	if err != nil {
		r.log.Error().Err(err).Str("runner", runner).Msg("refused runner not recorded")
	}
}

// engine returns the dispatcher. The owner serves only after it was set.
func (r *resources) engine() *dispatch.Dispatcher { return r.dispatcher.Load() }

// pastOf says how a run of a runner ended, as the ledger has it. It doesn't know tokens of other runners.
func (r *resources) pastOf(token fleet.Token, runner string) (fleet.Past, error) {
	seq, _, attempt := token.Task()
	runs, err := r.ledger.Runs(context.Background(), seq)
	if err != nil {
		return fleet.PastUnknown, err
	}
	for _, run := range runs {
		switch {
		case run.Attempt != attempt || run.At.Token != string(token) || run.At.Runner != runner:
		case run.Finished.IsZero() && !run.Settled:
			return fleet.PastOpen, nil
		case run.Finished.IsZero():
			return fleet.PastClosed, nil
		case run.Cause == task.CauseLost:
			return r.lateOf(task.RunName{Task: seq, Attempt: attempt})
		default:
			return fleet.PastSettled, nil
		}
	}
	return fleet.PastUnknown, nil
}

// lateOf says whether the ledger has a late answer of a run that was given up.
func (r *resources) lateOf(run task.RunName) (fleet.Past, error) {
	fenced, err := r.engine().HasLateAnswer(context.Background(), run)
	switch {
	case err != nil:
		return fleet.PastUnknown, err
	case fenced:
		return fleet.PastFenced, nil
	}
	return fleet.PastClosed, nil
}

// lateDir returns the directory for a late answer of a run: it is removed with that of the run. It is "" for a run
// that the ledger doesn't know.
func (r *resources) lateDir(token fleet.Token) (string, error) {
	seq, revision, attempt := token.Task()
	row, err := r.ledger.Task(context.Background(), seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(r.state.RunDir(row.ID, revision, attempt), "late"), nil
}

// recordFenced records an answer of a runner that came too late.
func (r *resources) recordFenced(late task.LateAnswer) error {
	if rel, err := filepath.Rel(r.state.Path(), late.File); err == nil {
		late.File = rel
	}
	return r.engine().RecordFenced(context.Background(), late)
}
