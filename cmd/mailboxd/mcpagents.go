package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mailboxd/internal/access/mcpserver"
	"mailboxd/internal/operating/config"
)

// agentsFor lists the agents that a requester may send tasks to. An agent that has a
// definition may send them only to those that it allows (CAP-19).
func agentsFor(requester string, cfg config.Config) []mcpserver.Agent {
	var all []mcpserver.Agent
	agents := cfg.ReadAgents()
	allowed, rules := delegates(requester, agents)
	for _, m := range agents {
		id := m.Binding.ID
		if m.Problem() != nil || m.Duplicate || allowed != nil && !slices.Contains(allowed, id) {
			continue
		}
		a := mcpserver.Agent{ID: id, TaskTypes: m.Subject.TaskTypes, Fetches: m.Binding.Inbox != nil, Description: descriptionOf(m), When: rules[id]}
		if manifest := m.Subject.Manifest; manifest != nil {
			a.Roles = manifest.RoleTypes
		}
		all = append(all, a)
	}
	return all
}

// delegates returns the agents that an agent may send tasks to, and when it shall. The list is
// nil for a requester that may send to all.
func delegates(requester string, agents []config.Agent) (allowed []string, rules map[string]string) {
	at := slices.IndexFunc(agents, func(m config.Agent) bool { return m.Binding.ID == requester })
	if at < 0 || agents[at].Binding.Definition == nil {
		return nil, nil
	}
	d := agents[at].Binding.Definition
	allowed = append([]string{}, d.AllowedAgents...)
	if d.Overseer != "" {
		allowed = append(allowed, d.Overseer)
	}
	return allowed, d.Rules
}

// descriptionOf says what an agent is for: as its manifest or its card does, or else what its
// card can do, or what program it is.
func descriptionOf(m config.Agent) string {
	var words string
	if manifest := m.Subject.Manifest; manifest != nil {
		words = cmp.Or(manifest.Description, manifest.Name)
	}
	if m.Card != nil {
		var skills []string
		for _, c := range m.Card.Capabilities {
			skills = append(skills, c.ID)
		}
		words = cmp.Or(words, m.Card.Description, m.Card.Name, strings.Join(skills, ", "))
	}
	if words == "" && m.Binding.Profile != "" {
		words = fmt.Sprintf("the program %s", m.Binding.Profile)
	}
	return words
}
