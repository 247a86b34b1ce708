package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/operating/config"
)

// candidates returns what a task needs of its agent, and all agents. It reports false for a task
// of AINL if the configuration forbids to choose its agent.
func (t *Registry) candidates(asked envelope.Task) (store.Candidates, bool) {
	r := t.current.Load()
	if asked.Clutch == nil && r.routing.AINL == "off" {
		return store.Candidates{}, false
	}
	c := store.Candidates{Need: r.needOf(asked), Rules: r.digest, Timeout: r.routing.Timeout}
	for _, id := range r.agents.IDs() {
		c.All = append(c.All, r.candidate(id))
	}
	return c, true
}

// needOf returns what a task needs of its agent.
func (r *snapshot) needOf(asked envelope.Task) route.Need {
	n := route.Need{
		Prod:    slices.Contains(r.routing.Prod, asked.Environment),
		Network: envelope.Network(r.routing.Network),
	}
	c := asked.Clutch
	if c == nil {
		return n
	}
	n.Requires, n.Prefers = c.Requires, c.Prefers
	n.Sandbox = c.SecurityPolicy.Sandbox != nil && *c.SecurityPolicy.Sandbox
	if own := c.SecurityPolicy.Network; own != "" && slices.Index(envelope.Networks(), own) < slices.Index(envelope.Networks(), n.Network) {
		n.Network = own
	}
	if len(c.Recipients) == 1 && c.Recipients[0].Group {
		n.Among = append([]string{}, r.groups[c.Recipients[0].Name]...)
	}
	return n
}

// candidate returns what the configuration says about an agent.
func (r *snapshot) candidate(id string) route.Candidate {
	m := r.agentConfig(id)
	c := route.Candidate{ID: id, Disabled: m.Subject.Unfit, Sandbox: m.Sandboxed(), Network: m.Network(), Slots: r.limit(id)}
	if m.Card != nil {
		c.Capabilities = m.Card.Capabilities
	}
	if m.Binding.Inbox != nil {
		c.Slots = m.Subject.Card.Concurrency
	}
	return c
}

// digestOf names the agents and rules of a configuration, for the record of a decision.
func digestOf(members []config.Agent, routing config.Routing) string {
	h := sha256.New()
	for _, m := range members {
		text, err := json.Marshal([]any{m.Binding.ID, m.Card, m.Subject, m.Sandboxed(), m.Network(), routing})
		if err != nil {
			return ""
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
