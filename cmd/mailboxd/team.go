package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/policy"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

// A team is who works here: the agents and rules in force, which SIGHUP may
// exchange for others while tasks run. It hands them to the engine as functions.
type team struct {
	box     *mailbox.Box
	keepers *runner.Keepers
	current atomic.Pointer[roster]
}

// A roster is one reading of the configuration. It is never changed.
type roster struct {
	agents *agent.Agents
	rules  policy.Rules
}

func newTeam(cfg config, box *mailbox.Box, keepers *runner.Keepers) (*team, error) {
	t := &team{box: box, keepers: keepers}
	return t, t.replace(cfg)
}

// replace puts another configuration in force, or leaves the old one.
func (t *team) replace(cfg config) error {
	var bindings []agent.Binding
	for i, entry := range cfg.Agents {
		binding, err := cfg.binding(entry)
		if err != nil {
			return fmt.Errorf("agents[%d] %q: %w", i, entry.ID, err)
		}
		bindings = append(bindings, binding)
	}
	agents, err := agent.New(bindings, agent.Options{
		Roots: []string{t.box.Path()}, Version: version(),
		Run: t.keepers.Run, Await: t.keepers.Await,
	})
	if err != nil {
		return err
	}
	t.current.Store(&roster{agents: agents, rules: cfg.rules()})
	return nil
}

func (t *team) agents() *agent.Agents { return t.current.Load().agents }

// binding returns how an agent is run, or a zero Binding for one that is not
// here any more.
func (t *team) binding(id string) agent.Binding {
	a, ok := t.agents().Lookup(id)
	if !ok {
		return agent.Binding{}
	}
	return a.Binding()
}

// functions is how the engine meets the team.
func (t *team) functions() dispatch.Agents {
	return dispatch.Agents{
		Judge: t.judge,
		Run: func(ctx context.Context, j dispatch.Job, started func(runner.Process)) dispatch.Outcome {
			return dispatch.Outcome(t.agents().Run(ctx, agent.Job(j), started))
		},
		Recover: func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
			return dispatch.Outcome(t.agents().Recover(ctx, agent.Job(j)))
		},
		HasDir:  func(string) bool { return true },
		Limit:   func(id string) int { return max(1, t.binding(id).Concurrency) },
		Reruns:  func(id string) bool { return t.binding(id).Resend != agent.Refuse },
		Retries: func(id string) int { return t.binding(id).Retries },
	}
}

func (t *team) judge(task envelope.Task, now time.Time) dispatch.Verdict {
	r := t.current.Load()
	var subject *policy.Subject
	if a, ok := r.agents.Lookup(task.Agent); ok {
		b := a.Binding()
		subject = &policy.Subject{Manifest: b.Manifest, Metered: b.Output == agent.Envelope || b.AllowUnmetered}
	}
	return dispatch.Verdict(policy.Decide(task, subject, r.rules, now))
}

// rules turns the configuration's words into policy's.
func (c *config) rules() policy.Rules {
	modes := map[string]policy.Mode{"enforce": policy.Enforce, "warn": policy.Warn, "off": policy.Off}
	return policy.Rules{
		Approval:     modes[c.Policy.Approval],
		Budget:       modes[c.Policy.Budget],
		ChangeWindow: modes[c.Policy.ChangeWindow.Mode],
		WindowExempt: c.Policy.ChangeWindow.ExemptTaskTypes,
	}
}

// binding turns one entry of agents into what runs it. Relative paths start
// at the configuration file.
func (c *config) binding(e agentEntry) (agent.Binding, error) {
	b := agent.Binding{
		ID: e.ID, Command: slices.Clone(e.Exec.Command),
		Output: agent.Format(e.Exec.Output), Stdin: agent.Stdin(e.Exec.Stdin),
		Cwd: c.resolve(e.Exec.Cwd), Env: e.Exec.Env, MaxOutput: e.Exec.MaxOutput,
		Timeout: e.Timeout, IdleTimeout: e.IdleTimeout, ExitTimeout: e.ExitTimeout,
		Concurrency: e.Concurrency, Retries: e.Retries,
		Resend: agent.Resend(e.Resend), AllowUnmetered: e.AllowUnmetered,
	}
	if len(b.Command) > 0 && strings.Contains(b.Command[0], "/") {
		b.Command[0] = c.resolve(b.Command[0])
	}
	if e.Manifest == "" {
		return b, nil
	}
	text, err := os.ReadFile(c.resolve(e.Manifest))
	if err != nil {
		return b, fmt.Errorf("manifest: %w", err)
	}
	manifest, findings := envelope.DecodeManifest(text)
	if findings.Refused() {
		return b, fmt.Errorf("manifest %s: %s", e.Manifest, findings.Refusals())
	}
	b.Manifest = &manifest
	return b, nil
}

// resolve makes a path of the configuration absolute; an empty one stays empty.
func (c *config) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir, path)
}
