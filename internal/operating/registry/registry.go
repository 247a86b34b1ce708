// Package registry has the agents and rules in force, and answers the engine's questions about
// them. A snapshot of the configuration never changes; a reload puts another one in its place
// while tasks run.
package registry

import (
	"context"
	"crypto/rand"
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
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/brokered"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schema"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/seal"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

// A Registry has the agents and rules in force. Replace changes them while tasks run. The
// engine gets them as functions. Its methods may be called concurrently, but for Replace and
// Close. The zero value has no agents and can't be used: see New.
type Registry struct {
	Locations
	log             zerolog.Logger
	current         atomic.Pointer[snapshot]
	loaded          config.Loaded  // what the daemon started with
	schemas         *schema.Record // of the content of schema files
	plans           agent.Planner  // of runs that people approve
	sessions        agent.Sessions // that runs continue now
	endedOldWorkers bool           // workers of an earlier daemon were ended
	retiring        sync.WaitGroup // workers of earlier configurations
}

// Locations are where agents find files and processes.
type Locations struct {
	Box     *mailbox.Box
	State   *mailbox.State
	Keepers *runner.Keepers

	Worktrees worktree.Store
	Artifacts *artifact.Store

	Runners *Runners // nil: no runner can be reached

	Earlier func(envelope.ID) (agent.Earlier, error) // looks up a task whose session another one continues

	Signer func() (seal.Signer, error) // signs messages of mailboxd, with the key that seals events

	RefRoots []string // where refs may be, besides the mailbox
	Mailbox  string   // its id, which signatures of approvals name
	Version  string   // of mailboxd, as workers get it
}

// New reads the agents, manifests and secrets of a configuration, and puts them in force.
func New(cfg config.Config, at Locations, log zerolog.Logger) (*Registry, error) {
	loaded, err := cfg.ReadAll()
	if err != nil {
		return nil, err
	}
	t := &Registry{Locations: at, log: log, loaded: loaded}
	t.plans.Key, t.plans.Known = sync.OnceValue(t.approvalKey), brokered.KnownDir(at.State.Path())
	if at.Runners != nil {
		t.plans.Remote = at.Runners.Bindings
	}
	t.plans.Cards.Dir = filepath.Join(at.State.Path(), "cards")
	if t.schemas, err = schema.OpenRecord(filepath.Join(at.State.Path(), schema.RecordName), t.schemaFault); err != nil {
		return nil, err
	}
	return t, t.Replace(loaded)
}

// Replace puts another configuration in force, unless it is invalid.
func (t *Registry) Replace(loaded config.Loaded) error {
	cfg, members := loaded.Config, loaded.Agents
	bindings := config.Bindings(members)
	schemas, err := t.loadSchemas(cfg.Policy)
	if err != nil {
		return fmt.Errorf("policy.schemas: %w", err)
	}
	rules := cfg.Policy.Rules()
	rules.KnowsSchema, rules.UnknownVersion = schemas.Has, schemas.UnknownVersion
	workflows := cfg.Steps()
	rules.UnknownStep = workflows.Unknown
	agents, err := agent.New(bindings, agent.Options{
		Roots: append([]string{t.Box.Path()}, t.RefRoots...), Version: t.Version, WorkerDir: t.workerDir(), Notice: t.logProblem,
		Schemas: schemas, Workflows: workflows, Modes: rules.Modes, Questions: cfg.Conversation.QuestionTimeout > 0,
		CheckRef:  func(uri string) error { return t.Box.CheckRef(uri, t.RefRoots) },
		FindRef:   func(uri string) (string, error) { return t.Box.FindRef(uri, t.RefRoots) },
		Worktrees: t.Worktrees, Artifacts: t.Artifacts, Earlier: t.Earlier, Sessions: &t.sessions,
		Own: agent.OwnDirs{Root: t.Box.Path(), State: t.State.Path()},
		Run: t.Keepers.Run, Await: t.Keepers.Await, Runners: t.Runners.functions(),
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
	next.proofs = cfg.Proofs(t.Mailbox)
	next.routing, next.groups, next.digest = cfg.Routing, cfg.GroupsByName(), digestOf(members, cfg.Routing)
	next.workflows = workflows
	next.approvers, next.secrets, next.questionTimeout = cfg.ApproverNames, loaded.Secrets, cfg.Conversation.QuestionTimeout
	next.signatures = cfg.SignatureRules()
	next.acceptsUnknown = cfg.Conversation.UnknownSenders == "accept"
	next.program = agent.ProgramRule(cfg.Approval.Program)
	for _, a := range cfg.EffectiveApprovers() {
		next.rules.Approvers = append(next.rules.Approvers, a.Name)
	}
	if err := t.schemas.Follow(schemas); err != nil {
		return err
	}
	t.current.Store(next)
	t.logProblems(members)
	if before != nil {
		t.retiring.Go(func() { before.agents.Close(workerGrace) })
	}
	return nil
}

// loadSchemas reads the schemas, and looks for those whose content changed since their first
// use.
func (t *Registry) loadSchemas(p config.Policy) (*schema.Set, error) {
	schemas, err := schema.Load(p.Schemas)
	if err != nil {
		return nil, err
	}
	for _, ref := range t.schemas.Changed(schemas) {
		if p.SchemasPinned {
			return nil, schema.Altered(ref)
		}
		t.log.Warn().Str("reason", schema.Altered(ref).Error()).Msg("schema changed since its first use")
	}
	return schemas, nil
}

func (t *Registry) schemaFault(err error) {
	t.log.Error().Err(err).Msg("use of a schema not recorded")
}

// endOldWorkers ends the workers of a killed daemon before this one starts any.
func (t *Registry) endOldWorkers(bindings []agent.Binding) error {
	isWorker := func(b agent.Binding) bool { return b.Worker != nil }
	if t.endedOldWorkers || !slices.ContainsFunc(bindings, isWorker) {
		return nil
	}
	t.endedOldWorkers = true
	return agent.SweepWorkers(t.workerDir())
}

// workerGrace is how long an idle worker may take to exit, and again after SIGTERM.
const workerGrace = 200 * time.Millisecond

// Close ends the workers. All runs have ended before.
func (t *Registry) Close() {
	t.agents().Close(workerGrace)
	t.retiring.Wait()
}

// logProblem logs a problem of an agent that ends no run.
func (t *Registry) logProblem(id string, err error) {
	message := "worker failed"
	if _, ok := errors.AsType[*agent.NotCopiedError](err); ok {
		message = "worktree lacks files of exec.worktree.copy"
	}
	t.log.Warn().Str("agent", id).Err(err).Msg(message)
}

// workerDir is where worker processes have their directories.
func (t *Registry) workerDir() string { return filepath.Join(t.State.Path(), "workers") }

// Approvers returns the approver names of a user.
func (t *Registry) Approvers(uid int) []string { return t.current.Load().approvers(uid) }

// Proofs returns how the decisions of approvers are proven.
func (t *Registry) Proofs() proof.Approvers { return t.current.Load().proofs }

// Loaded returns the configuration that New put in force.
func (t *Registry) Loaded() config.Loaded { return t.loaded }

// IDs lists the enabled agents, sorted.
func (t *Registry) IDs() []string { return t.current.Load().ids() }

func (t *Registry) agents() *agent.Agents { return t.current.Load().agents }

// binding returns how an agent is run; zero for an unknown agent.
func (t *Registry) binding(id string) agent.Binding {
	a, ok := t.agents().Lookup(id)
	if !ok {
		return agent.Binding{}
	}
	return a.Binding()
}

// Functions returns the functions that the engine calls.
func (t *Registry) Functions(cfg config.Config) store.Agents {
	return store.Agents{
		Judge: t.judge,
		Run:   t.run,
		Recover: func(ctx context.Context, j task.Job) task.Outcome {
			return t.agents().Recover(ctx, j)
		},
		Forget:  t.Keepers.Forget,
		Refs:    func(id string) store.RefRule { return t.current.Load().refRule(id) },
		HasDir:  func(id string) bool { return t.agents().HasDir(id) },
		Limit:   func(id string) int { return t.current.Load().limit(id) },
		Reruns:  func(id string) bool { return t.binding(id).Resend != agent.Refuse },
		Retries: func(id string) int { return t.binding(id).Retries },
		Backoff: func(id string) time.Duration { return t.binding(id).Backoff },
		Known:   func(id string) bool { _, ok := t.agents().Lookup(id); return ok },
		Mode:    t.mode,
		Inbox:   t.inbox,

		IsRemote: t.isRemote,
		Runners:  t.Runners.places(),
		Answer: func(j task.Job, said []byte, exit task.Exit) (task.Outcome, error) {
			return t.agents().Answered(j, said, exit)
		},

		Prove: func(row task.Task, c task.Consent) (task.ProofLevel, error) {
			return t.Proofs().Check(row, c, time.Now())
		},
		WhyNobody:   func(row task.Task, only string) string { return t.Proofs().WhyNobody(row, only) },
		Candidates:  t.candidates,
		Protocol:    t.protocol(cfg),
		ApprovalTTL: func() time.Duration { return t.current.Load().approvalTTL },
	}
}

// errChanged refuses a run that is not the approved one.
var errChanged = errors.New("what would be run has changed since its run was approved")

// placed returns the binding of an agent with the directory in which it would do a task.
func placed(a *agent.Agent, t envelope.Task) (b agent.Binding, wrong envelope.Findings) {
	b = a.Binding()
	b.Cwd, wrong = a.Cwd(t)
	return b, wrong
}

// run has an agent do a job. It starts nothing when the command is not the approved one,
// since the configuration may have changed.
func (t *Registry) run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	r := t.current.Load()
	if a, ok := r.agents.Lookup(j.Task.Agent); ok && j.Digest != "" {
		b, wrong := placed(a, j.Task)
		if wrong.Refused() {
			return task.Outcome{Void: fmt.Errorf("%w: %s", errChanged, wrong)}
		}
		t.plans.LookAgain(b)
		if plan := t.plans.PlanOf(j.Task, b, j.Terms, r.program); plan.Digest() != j.Digest {
			t.plans.AddVersions(&plan, b)
			return task.Outcome{Void: fmt.Errorf("%w: %s", errChanged, task.Difference(j.Plan, plan.Encode()))}
		}
		j.Cwd = b.Cwd
	}
	return r.agents.Run(ctx, j, started)
}

// judge asks policy. The plan to approve is the run as it is configured now.
func (t *Registry) judge(asked envelope.Task, now time.Time) task.Verdict {
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
		plan := t.plans.PlanOf(asked, b, v.Terms, r.program)
		v.Digest = plan.Digest()
		t.plans.AddVersions(&plan, b)
		v.Plan = plan.Encode()
	}
	return v
}

// approvalKey returns the key of the HMAC of values that approvals cover. Without the one of the
// state directory, approvals count until the daemon ends, and are asked for again then.
func (t *Registry) approvalKey() []byte {
	key, err := t.State.ApprovalKey()
	if err != nil {
		t.log.Error().Err(err).Msg("key of approvals not kept; approvals that cover variables are asked for again after a restart")
		key = rand.Text()
	}
	return []byte(key)
}

// mode is how strictly a control is enforced.
func (t *Registry) mode(c envelope.Control) envelope.Mode { return t.current.Load().rules.Modes[c] }

// inbox returns the inbox of an agent, if it has one.
func (t *Registry) inbox(id string) store.Inbox {
	if in := t.binding(id).Inbox; in != nil {
		return store.Inbox(*in)
	}
	return store.Inbox{}
}

// logProblems logs which agents are disabled, the warnings about manifests, and which programs have
// a version that was not tested.
func (t *Registry) logProblems(members []config.Agent) {
	seen := map[string]bool{} // programs; several agents can have one
	for _, m := range members {
		if m.Subject.Unfit != "" {
			t.log.Error().Str("agent", m.Binding.ID).Str("reason", m.Subject.Unfit).Msg("agent disabled; tasks for it are refused")
		} else if len(m.Warnings) > 0 {
			t.log.Warn().Str("agent", m.Binding.ID).Stringer("reason", m.Warnings).Msg("manifest accepted with warnings")
		}
		for _, warning := range m.Unknown {
			t.log.Warn().Str("agent", m.Binding.ID).Str("reason", warning).Msg("agent entry has an unknown name")
		}
		if v, untested := m.Binding.Untested(); untested && !seen[v.Program] {
			seen[v.Program] = true
			t.log.Warn().Str("agent", m.Binding.ID).Str("program", v.Program).Str("version", v.Found).Str("tested_with", v.Tested).
				Msg("agent program has an untested major version")
		}
	}
}
