package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/agent"
	"mailboxd/internal/config"
	"mailboxd/internal/policy"
	"mailboxd/internal/runner"
	"mailboxd/internal/schema"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A registry is who works here: the agents and rules in force, which SIGHUP may
// exchange for others while tasks run. It hands them to the engine as functions.
type registry struct {
	locations
	log             zerolog.Logger
	current         atomic.Pointer[snapshot]
	endedOldWorkers bool           // of what workers of an earlier daemon left
	retiring        sync.WaitGroup // workers that a new configuration has no use for
}

// locations are where a registry works.
type locations struct {
	box     *mailbox.Box
	state   *mailbox.State
	keepers *runner.Keepers

	refRoots []string // in which named files may lie, beside the mailbox; those of the start
}

func newRegistry(cfg config.Config, at locations, log zerolog.Logger) (*registry, error) {
	t := &registry{locations: at, log: log}
	return t, t.replace(cfg)
}

// replace puts another configuration in force, or leaves the old one.
func (t *registry) replace(cfg config.Config) error {
	members := cfg.ReadAgents()
	bindings := config.Bindings(members)
	schemas, err := schema.Load(cfg.Policy.Schemas)
	if err != nil {
		return fmt.Errorf("policy.schemas: %w", err)
	}
	secrets, err := cfg.Secrets()
	if err != nil {
		return err
	}
	rules := cfg.Policy.Rules()
	rules.KnowsSchema = schemas.Has
	agents, err := agent.New(bindings, agent.Options{
		Roots: append([]string{t.box.Path()}, t.refRoots...), Version: version(), WorkerDir: t.workerDir(), Notice: t.workerFault,
		Schemas: schemas, Modes: rules.Modes, Questions: cfg.Conversation.QuestionTimeout > 0,
		CheckRef: func(uri string) error { return t.box.CheckRef(uri, t.refRoots) },
		Run:      t.keepers.Run, Await: t.keepers.Await,
	})
	if err != nil {
		return err
	}
	if err := t.endOldWorkers(bindings); err != nil {
		return err
	}
	before := t.current.Load()
	if before != nil {
		agents.Keep(before.agents)
	}
	next := newSnapshot(agents, members, rules, cfg.Policy.ApprovalTTL)
	next.approvers, next.secrets, next.questionTimeout = cfg.ApproverNames, secrets, cfg.Conversation.QuestionTimeout
	for _, a := range cfg.EffectiveApprovers() {
		next.rules.Approvers = append(next.rules.Approvers, a.Name)
	}
	t.current.Store(next)
	t.logProblems(members)
	if before != nil {
		t.retiring.Go(func() { before.agents.Close(workerGrace) })
	}
	return nil
}

// endOldWorkers ends what a daemon that was killed left of its workers, before there
// are any of ours.
func (t *registry) endOldWorkers(bindings []agent.Binding) error {
	isWorker := func(b agent.Binding) bool { return b.Worker != nil }
	if t.endedOldWorkers || !slices.ContainsFunc(bindings, isWorker) {
		return nil
	}
	t.endedOldWorkers = true
	return agent.SweepWorkers(t.workerDir())
}

// workerGrace is what a worker without a task has to exit by itself, and again
// after SIGTERM: it has nothing to finish, and we want to be gone in a second.
const workerGrace = 200 * time.Millisecond

// close ends the workers. It comes after the last run.
func (t *registry) close() {
	t.agents().Close(workerGrace)
	t.retiring.Wait()
}

func (t *registry) workerFault(id string, err error) {
	t.log.Warn().Str("agent", id).Err(err).Msg("trouble with a worker")
}

// workerDir is where worker processes have their directories.
func (t *registry) workerDir() string { return filepath.Join(t.state.Path(), "workers") }

// approvers are the names under which a user may decide about tasks.
func (t *registry) approvers(uid int) []string { return t.current.Load().approvers(uid) }

func (t *registry) agents() *agent.Agents { return t.current.Load().agents }

// binding returns how an agent is run, or a zero Binding for one that is not
// here any more.
func (t *registry) binding(id string) agent.Binding {
	a, ok := t.agents().Lookup(id)
	if !ok {
		return agent.Binding{}
	}
	return a.Binding()
}

// functions is how the engine meets the registry. Of the configuration it takes what
// holds from the start to the end.
func (t *registry) functions(cfg config.Config) store.Agents {
	return store.Agents{
		Judge: t.judge,
		Run:   t.run,
		Recover: func(ctx context.Context, j task.Job) task.Outcome {
			return t.agents().Recover(ctx, j)
		},
		Forget:  t.keepers.Forget,
		Refs:    func(id string) store.RefRule { return t.current.Load().refRule(id) },
		HasDir:  func(id string) bool { return t.agents().HasDir(id) },
		Limit:   func(id string) int { return t.current.Load().limit(id) },
		Reruns:  func(id string) bool { return t.binding(id).Resend != agent.Refuse },
		Retries: func(id string) int { return t.binding(id).Retries },
		Backoff: func(id string) time.Duration { return t.binding(id).Backoff },
		Known:   func(id string) bool { _, ok := t.agents().Lookup(id); return ok },
		Mode:    t.mode,
		Inbox:   t.inbox,
		Answer: func(j task.Job, said []byte, exit task.Exit) (task.Outcome, error) {
			return t.agents().Answered(j, said, exit)
		},

		Protocol:    t.protocol(cfg),
		ApprovalTTL: func() time.Duration { return t.current.Load().approvalTTL },
	}
}

// errChanged voids a run that somebody agreed to when it was another one.
var errChanged = errors.New("the agent's command has changed since its run was approved")

// run has an agent do a job. The configuration may have changed since the job
// was judged: then what a person agreed to holds, and nothing is started.
func (t *registry) run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	r := t.current.Load()
	if a, ok := r.agents.Lookup(j.Task.Agent); ok && j.Digest != "" {
		if digest(newPlan(j.Task, a.Binding(), j.Terms).Encode()) != j.Digest {
			return task.Outcome{Void: errChanged}
		}
	}
	return r.agents.Run(ctx, j, started)
}

// judge is how the engine meets policy. What a person has to agree to is the
// run as it is configured.
func (t *registry) judge(asked envelope.Task, now time.Time) task.Verdict {
	r := t.current.Load()
	v := policy.Decide(asked, r.subject(asked.Agent), r.rules, now)
	if a, ok := r.agents.Lookup(asked.Agent); ok && slices.Contains(v.Hold, task.Approval) {
		v.Plan = newPlan(asked, a.Binding(), v.Terms).Encode()
		v.Digest = digest(v.Plan)
	}
	return v
}

// mode is how strictly a control is held.
func (t *registry) mode(c envelope.Control) envelope.Mode { return t.current.Load().rules.Modes[c] }

// inbox is where an agent fetches its tasks, if it does.
func (t *registry) inbox(id string) store.Inbox {
	if in := t.binding(id).Inbox; in != nil {
		return store.Inbox(*in)
	}
	return store.Inbox{}
}

// logProblems tells the operator, once for each reading of the configuration, who
// cannot be asked, and what is odd about a manifest.
func (t *registry) logProblems(members []config.Agent) {
	for _, m := range members {
		if m.Subject.Unfit != "" {
			t.log.Error().Str("agent", m.Binding.ID).Str("reason", m.Subject.Unfit).Msg("agent disabled; tasks for it are refused")
		} else if len(m.Warnings) > 0 {
			t.log.Warn().Str("agent", m.Binding.ID).Stringer("reason", m.Warnings).Msg("manifest taken with doubts")
		}
		for _, doubt := range m.Unknown {
			t.log.Warn().Str("agent", m.Binding.ID).Str("reason", doubt).Msg("agent names one that is not there")
		}
	}
}

// protocol is how the engine learns how agents are spoken with. What a SIGHUP
// changes, it asks anew each time; the numbers stay those of the start.
func (t *registry) protocol(cfg config.Config) store.Protocol {
	return store.Protocol{
		Dialect:     func(id string) envelope.Dialect { return t.binding(id).Speaks() },
		Overseer:    func(id string) string { return t.definition(id).Overseer },
		MayDelegate: t.mayDelegate,
		Rule:        func(from, to string) string { return t.definition(from).Rules[to] },
		Takers: func(taskType string, announced map[string][]string) []string {
			return t.current.Load().takers(taskType, announced)
		},
		Supports: func(id string) []string { return t.current.Load().supports(id) },
		Agents:   func() []string { return t.current.Load().ids() },
		Secret:   func(name string) string { return t.current.Load().secrets[name] },
		OnFailure: func(id string, kind envelope.Kind) store.FailureAction {
			return mendOf(t.current.Load().agentConfig(id).Entry, kind)
		},
		QuestionTimeout: func() time.Duration { return t.current.Load().questionTimeout },

		Rounds:       cfg.Oversight.Rounds,
		ReplyTimeout: cfg.Oversight.Patience,
		Broadcast:    cfg.Limits.Broadcast,
	}
}

// definition is what CAP says of an agent; the zero Definition when it has none.
func (t *registry) definition(id string) dialect.Definition {
	if d := t.binding(id).Definition; d != nil {
		return *d
	}
	return dialect.Definition{}
}

// mayDelegate says why an agent may not hand work to another (CAP-19). One
// without a definition may, as far as lineage and policy let it, and everybody
// may hand their own overseer what they did.
func (t *registry) mayDelegate(from, to string) string {
	d := t.binding(from).Definition
	switch {
	case d == nil || to == d.Overseer || to != from && slices.Contains(d.AllowedAgents, to):
		return ""
	case to == from:
		return fmt.Sprintf("%s hands work to itself", from)
	}
	return fmt.Sprintf("%s is not among the allowed_agents of %s", to, from)
}

// mendOf returns what the configuration of an agent says to do about an error.
func mendOf(e config.Entry, kind envelope.Kind) store.FailureAction {
	rule, ok := e.RuleFor(kind)
	switch {
	case !ok:
		return store.FailureAction{}
	case rule.Do == "retry":
		return store.FailureAction{Retry: true}
	case rule.Do == "reassign":
		return store.FailureAction{Reassign: rule.To}
	}
	return store.FailureAction{Escalate: cmp.Or(rule.To, "user")}
}
