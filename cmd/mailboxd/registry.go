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
	"mailboxd/internal/proof"
	"mailboxd/internal/runner"
	"mailboxd/internal/schema"
	"mailboxd/internal/task"
	"mailboxd/internal/worktree"
	"mailboxd/mailbox"
)

// A registry has the agents and rules in force. SIGHUP replaces them while tasks run.
// The engine gets them as functions.
type registry struct {
	locations
	log             zerolog.Logger
	current         atomic.Pointer[snapshot]
	loaded          config.Loaded  // what the daemon started with
	endedOldWorkers bool           // workers of an earlier daemon were ended
	retiring        sync.WaitGroup // workers of earlier configurations
}

// locations are where agents find files and processes.
type locations struct {
	box     *mailbox.Box
	state   *mailbox.State
	keepers *runner.Keepers

	worktrees worktree.Store

	refRoots []string // where refs may be, besides the mailbox
	mailbox  string   // its id, which signatures of approvals name
}

func newRegistry(cfg config.Config, at locations, log zerolog.Logger) (*registry, error) {
	loaded, err := cfg.ReadAll()
	if err != nil {
		return nil, err
	}
	t := &registry{locations: at, log: log, loaded: loaded}
	return t, t.replace(loaded)
}

// replace puts another configuration in force, unless it is invalid.
func (t *registry) replace(loaded config.Loaded) error {
	cfg, members := loaded.Config, loaded.Agents
	bindings := config.Bindings(members)
	schemas, err := schema.Load(cfg.Policy.Schemas)
	if err != nil {
		return fmt.Errorf("policy.schemas: %w", err)
	}
	rules := cfg.Policy.Rules()
	rules.KnowsSchema = schemas.Has
	agents, err := agent.New(bindings, agent.Options{
		Roots: append([]string{t.box.Path()}, t.refRoots...), Version: version(), WorkerDir: t.workerDir(), Notice: t.workerFault,
		Schemas: schemas, Modes: rules.Modes, Questions: cfg.Conversation.QuestionTimeout > 0,
		CheckRef:  func(uri string) error { return t.box.CheckRef(uri, t.refRoots) },
		FindRef:   func(uri string) (string, error) { return t.box.FindRef(uri, t.refRoots) },
		Worktrees: t.worktrees,
		Own:       agent.OwnDirs{Root: t.box.Path(), State: t.state.Path()},
		Run:       t.keepers.Run, Await: t.keepers.Await,
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
	next.proofs = cfg.Proofs(t.mailbox)
	next.approvers, next.secrets, next.questionTimeout = cfg.ApproverNames, loaded.Secrets, cfg.Conversation.QuestionTimeout
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

// endOldWorkers ends the workers of a killed daemon before this one starts any.
func (t *registry) endOldWorkers(bindings []agent.Binding) error {
	isWorker := func(b agent.Binding) bool { return b.Worker != nil }
	if t.endedOldWorkers || !slices.ContainsFunc(bindings, isWorker) {
		return nil
	}
	t.endedOldWorkers = true
	return agent.SweepWorkers(t.workerDir())
}

// workerGrace is how long an idle worker may take to exit, and again after SIGTERM.
const workerGrace = 200 * time.Millisecond

// close ends the workers. All runs have ended before.
func (t *registry) close() {
	t.agents().Close(workerGrace)
	t.retiring.Wait()
}

func (t *registry) workerFault(id string, err error) {
	t.log.Warn().Str("agent", id).Err(err).Msg("worker failed")
}

// workerDir is where worker processes have their directories.
func (t *registry) workerDir() string { return filepath.Join(t.state.Path(), "workers") }

// approvers returns the approver names of a user.
func (t *registry) approvers(uid int) []string { return t.current.Load().approvers(uid) }

// proofs returns how the decisions of approvers are proven.
func (t *registry) proofs() proof.Approvers { return t.current.Load().proofs }

func (t *registry) agents() *agent.Agents { return t.current.Load().agents }

// binding returns how an agent is run; zero for an unknown agent.
func (t *registry) binding(id string) agent.Binding {
	a, ok := t.agents().Lookup(id)
	if !ok {
		return agent.Binding{}
	}
	return a.Binding()
}

// functions returns the functions that the engine calls.
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

		Prove: func(row task.Task, c task.Consent) (task.ProofLevel, error) {
			return t.proofs().Check(row, c, time.Now())
		},
		Protocol:    t.protocol(cfg),
		ApprovalTTL: func() time.Duration { return t.current.Load().approvalTTL },
	}
}

// errChanged refuses a run whose command is not the approved one.
var errChanged = errors.New("the agent's command or directory has changed since its run was approved")

// placed returns the binding of an agent with the directory in which it would do a task.
func placed(a *agent.Agent, t envelope.Task) (b agent.Binding, wrong envelope.Findings) {
	b = a.Binding()
	b.Cwd, wrong = a.Cwd(t)
	return b, wrong
}

// run has an agent do a job. It starts nothing when the command is not the approved one,
// since the configuration may have changed.
func (t *registry) run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	r := t.current.Load()
	if a, ok := r.agents.Lookup(j.Task.Agent); ok && j.Digest != "" {
		b, wrong := placed(a, j.Task)
		if wrong.Refused() || agent.DigestOf(agent.PlanOf(j.Task, b, j.Terms).Encode()) != j.Digest {
			return task.Outcome{Void: errChanged}
		}
		j.Cwd = b.Cwd
	}
	return r.agents.Run(ctx, j, started)
}

// judge asks policy. The plan to approve is the run as it is configured now.
func (t *registry) judge(asked envelope.Task, now time.Time) task.Verdict {
	r := t.current.Load()
	v := policy.Decide(asked, r.subject(asked.Agent), r.rules, now)
	a, ok := r.agents.Lookup(asked.Agent)
	if !ok || !v.Admit {
		return v
	}
	b, wrong := placed(a, asked)
	if wrong.Refused() {
		return task.Verdict{Findings: append(v.Findings, wrong...), Terms: task.Terms{Proof: v.Proof}}
	}
	if slices.Contains(v.Hold, task.Approval) {
		v.Plan = agent.PlanOf(asked, b, v.Terms).Encode()
		v.Digest = agent.DigestOf(v.Plan)
	}
	return v
}

// mode is how strictly a control is enforced.
func (t *registry) mode(c envelope.Control) envelope.Mode { return t.current.Load().rules.Modes[c] }

// inbox returns the inbox of an agent, if it has one.
func (t *registry) inbox(id string) store.Inbox {
	if in := t.binding(id).Inbox; in != nil {
		return store.Inbox(*in)
	}
	return store.Inbox{}
}

// logProblems logs which agents are disabled, and the warnings about manifests.
func (t *registry) logProblems(members []config.Agent) {
	for _, m := range members {
		if m.Subject.Unfit != "" {
			t.log.Error().Str("agent", m.Binding.ID).Str("reason", m.Subject.Unfit).Msg("agent disabled; tasks for it are refused")
		} else if len(m.Warnings) > 0 {
			t.log.Warn().Str("agent", m.Binding.ID).Stringer("reason", m.Warnings).Msg("manifest accepted with warnings")
		}
		for _, warning := range m.Unknown {
			t.log.Warn().Str("agent", m.Binding.ID).Str("reason", warning).Msg("agent refers to an unknown agent")
		}
	}
}

// protocol returns what the engine asks about conversations. Agents may change at a
// SIGHUP; the limits are those of the start.
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

// definition returns the CAP definition of an agent; zero without one.
func (t *registry) definition(id string) dialect.Definition {
	if d := t.binding(id).Definition; d != nil {
		return *d
	}
	return dialect.Definition{}
}

// mayDelegate says why an agent may not delegate to another (CAP-19), or "". Lineage and
// policy limit an agent without a definition, and each agent may delegate to its
// overseer.
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
