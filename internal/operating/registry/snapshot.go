package registry

import (
	"path"
	"slices"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/sign"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/schema"
)

// A snapshot is one reading of the configuration. It never changes.
type snapshot struct {
	agents       *agent.Agents
	rules        policy.Rules
	agentConfigs map[string]*config.Agent // by the agents' ids

	secrets     map[string]string // of senders, by name
	signatures  sign.Rules
	approvalTTL time.Duration
	approvers   func(uid int) []string
	proofs      proof.Approvers
	program     agent.ProgramRule // what approvals cover of programs
	workflows   schema.Workflows

	routing config.Routing
	groups  map[string][]string // the agents of each group
	digest  string              // of agents and rules, for the record of a decision

	acceptsUnknown  bool          // whether messages of unknown senders are accepted
	questionTimeout time.Duration // how long a requester may take to reply; 0: no wait
}

func newSnapshot(agents *agent.Agents, members []config.Agent, rules policy.Rules, approvalTTL time.Duration) *snapshot {
	r := &snapshot{agents: agents, rules: rules, agentConfigs: map[string]*config.Agent{}, approvalTTL: approvalTTL}
	r.rules.Domains = map[string]string{}
	for _, m := range members {
		r.agentConfigs[m.Binding.ID] = &m
		if manifest := m.Subject.Manifest; manifest != nil {
			r.rules.Domains[m.Binding.ID] = manifest.TrustDomain
		}
	}
	return r
}

// agentConfig returns the configuration of an agent; an empty one for an unknown agent.
func (r *snapshot) agentConfig(id string) *config.Agent {
	if m, ok := r.agentConfigs[id]; ok {
		return m
	}
	return &config.Agent{}
}

// subject returns what policy asks about an agent; nil for an unknown one.
func (r *snapshot) subject(id string) *policy.Subject {
	m, ok := r.agentConfigs[id]
	if !ok {
		return nil
	}
	return &m.Subject
}

// limit is how many runs an agent may have at once, by its entry and its budget class.
func (r *snapshot) limit(id string) int {
	limit := 1
	if a, ok := r.agents.Lookup(id); ok {
		limit = max(limit, a.Binding().Concurrency)
	}
	if card := r.agentConfig(id).Subject.Card; card.Concurrency > 0 {
		limit = min(limit, card.Concurrency)
	}
	manifest := r.agentConfig(id).Subject.Manifest
	if manifest == nil || r.rules.Modes[envelope.ControlBudget] != envelope.Enforce {
		return limit
	}
	if class, _ := r.rules.Class(manifest.BudgetClass); class.Concurrency > 0 {
		limit = min(limit, class.Concurrency)
	}
	return limit
}

// refRule is how the refs of a task for an agent are checked.
func (r *snapshot) refRule(id string) store.RefRule {
	return store.RefRule{Mode: r.rules.Modes[envelope.ControlRefs], Required: r.agentConfig(id).RefsRequired}
}

// ids lists the enabled agents, sorted.
func (r *snapshot) ids() []string {
	var ids []string
	for _, id := range r.agents.IDs() {
		if r.agentConfig(id).Subject.Unfit == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// takers lists the agents that take a type of work, sorted: by what they announced, or
// else by their entry (CLOWL-09).
func (r *snapshot) takers(taskType string, announced map[string][]string) []string {
	return slices.DeleteFunc(r.ids(), func(id string) bool {
		patterns := r.agentConfig(id).Subject.TaskTypes
		fits := len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, taskType)
			return ok || supported(pattern, taskType)
		})
		if supports, said := announced[id]; said {
			fits = fits && slices.ContainsFunc(supports, func(item string) bool { return supported(item, taskType) })
		}
		return !fits
	})
}

// supported reports whether an announced item covers a type of work: search and
// search:web cover search, and * covers all (CLOWL-29).
func supported(item, taskType string) bool {
	return item == "*" || item == taskType || strings.HasPrefix(item, taskType+":")
}

// supports lists the types of work that an agent takes.
func (r *snapshot) supports(id string) []string {
	if _, known := r.agents.Lookup(id); !known {
		return nil
	}
	if types := r.agentConfig(id).Subject.TaskTypes; len(types) > 0 {
		return slices.Clone(types)
	}
	return []string{"*"}
}
