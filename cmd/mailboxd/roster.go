package main

import (
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/config"
	"mailboxd/internal/policy"
)

// A roster is one reading of the configuration. It is never changed.
type roster struct {
	agents  *agent.Agents
	rules   policy.Rules
	members map[string]*config.Agent // by the agents' ids

	secrets     map[string]string // what senders prove themselves with
	approvalTTL time.Duration
	approvers   func(uid int) []string

	questionTimeout time.Duration // how long a requester may take to reply; 0: nobody waits for that
}

func newRoster(agents *agent.Agents, members []config.Agent, rules policy.Rules, approvalTTL time.Duration) *roster {
	r := &roster{agents: agents, rules: rules, members: map[string]*config.Agent{}, approvalTTL: approvalTTL}
	r.rules.Domains = map[string]string{}
	for _, m := range members {
		r.members[m.Binding.ID] = &m
		if manifest := m.Subject.Manifest; manifest != nil {
			r.rules.Domains[m.Binding.ID] = manifest.TrustDomain
		}
	}
	return r
}

// member returns who has an id; nobody, of whom nothing is known, for one that is
// not here.
func (r *roster) member(id string) *config.Agent {
	if m, ok := r.members[id]; ok {
		return m
	}
	return &config.Agent{}
}

// subject returns what policy needs to know of an agent; nil for an unknown one.
func (r *roster) subject(id string) *policy.Subject {
	m, ok := r.members[id]
	if !ok {
		return nil
	}
	return &m.Subject
}

// limit is how many runs an agent may have at once: by its own configuration,
// and by its budget class.
func (r *roster) limit(id string) int {
	limit := 1
	if a, ok := r.agents.Lookup(id); ok {
		limit = max(limit, a.Binding().Concurrency)
	}
	manifest := r.member(id).Subject.Manifest
	if manifest == nil || r.rules.Modes[envelope.ControlBudget] != envelope.Enforce {
		return limit
	}
	if class, _ := r.rules.Class(manifest.BudgetClass); class.Concurrency > 0 {
		limit = min(limit, class.Concurrency)
	}
	return limit
}

// refRule is how the files that a task for an agent names are judged.
func (r *roster) refRule(id string) store.RefRule {
	return store.RefRule{Mode: r.rules.Modes[envelope.ControlRefs], Required: r.member(id).RefsRequired}
}

// ids lists the agents that can be asked, sorted.
func (r *roster) ids() []string {
	var ids []string
	for _, id := range r.agents.IDs() {
		if r.member(id).Subject.Unfit == "" {
			ids = append(ids, id)
		}
	}
	return ids
}
