package registry

import (
	"maps"
	"slices"

	"mailboxd/internal/access/client"
)

// Cards returns what the configuration says that each agent can do, sorted by id. The engine
// knows what each one does now.
func (t *Registry) Cards() []client.Card {
	r := t.current.Load()
	cards := []client.Card{}
	for _, id := range r.agents.IDs() {
		c, m := r.candidate(id), r.agentConfig(id)
		card := client.Card{
			Agent: id, Capabilities: []client.CardCapability{}, Concurrency: c.Slots, Sandbox: c.Sandbox, Network: string(c.Network),
			MaxRuntime: int64(m.Binding.Timeout.Seconds()), MaxTokens: m.Subject.Card.Budget.Tokens, MaxCents: m.Subject.Card.Budget.USDCents,
		}
		for _, group := range slices.Sorted(maps.Keys(r.groups)) {
			if slices.Contains(r.groups[group], id) {
				card.Groups = append(card.Groups, group)
			}
		}
		if m.Card != nil {
			card.Name, card.Description, card.Endpoints = m.Card.Name, m.Card.Description, m.Card.Endpoints
		}
		for _, have := range c.Capabilities {
			card.Capabilities = append(card.Capabilities, client.CardCapability{
				ID: have.ID, Version: have.Version, Tags: have.Tags, Tools: have.Tools, Servers: have.Servers,
				TrustLevel: string(have.TrustLevel), CostHint: have.CostHint,
			})
		}
		cards = append(cards, card)
	}
	return cards
}
