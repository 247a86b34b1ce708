package gateway

import (
	"context"
	"encoding/json" // that of the library, whose types it encodes
	"net/http"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/internal/access/client"
)

// serveCard answers with the card of the gateway for the sender.
func (s *server) serveCard(w http.ResponseWriter, r *http.Request) {
	card, err := s.GetExtendedAgentCard(r.Context(), nil)
	if err != nil {
		refuse(w, r, down)
		return
	}
	text, err := json.Marshal(card)
	if err != nil {
		refuse(w, r, down)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client is gone, or not
}

// GetExtendedAgentCard returns the card for the sender: its skills are the agents that the sender may ask.
func (s *server) GetExtendedAgentCard(ctx context.Context, _ *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	c, err := callIn(ctx)
	if err != nil {
		return nil, err
	}
	var agents []client.Card
	err = s.daemon.use(ctx, func(d daemon) (err error) {
		agents, err = d.Cards(ctx)
		return err
	})
	if err != nil {
		return nil, s.failure(err)
	}
	const login = "bearer"
	plain := []string{"text/plain", "application/json"}
	card := &a2a.AgentCard{
		Name: "mailboxd", Version: s.opts.Version,
		Description: "Agents of a mailbox. A message names one in metadata.agent, by the id of its skill; without it, the only one is asked.",
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface(s.url+"/", a2a.TransportProtocolJSONRPC), a2a.NewAgentInterface(s.url, a2a.TransportProtocolHTTPJSON),
		},
		Capabilities:      a2a.AgentCapabilities{Streaming: true, ExtendedAgentCard: true},
		DefaultInputModes: plain, DefaultOutputModes: plain,
		SecuritySchemes:      a2a.NamedSecuritySchemes{login: a2a.HTTPAuthSecurityScheme{Scheme: "Bearer"}},
		SecurityRequirements: a2a.SecurityRequirementsOptions{{login: {}}},
		Skills:               []a2a.AgentSkill{},
	}
	for _, agent := range agents {
		if slices.Contains(c.sender.Agents, agent.Agent) {
			card.Skills = append(card.Skills, skillOf(agent))
		}
	}
	return card, nil
}

// skillOf describes an agent as its card does.
func skillOf(agent client.Card) a2a.AgentSkill {
	skill := a2a.AgentSkill{ID: agent.Agent, Name: agent.Agent, Description: "The agent " + agent.Agent + ".", Tags: []string{}}
	if agent.Name != "" {
		skill.Name = agent.Name
	}
	if agent.Description != "" {
		skill.Description = agent.Description
	}
	for _, can := range agent.Capabilities {
		skill.Tags = append(skill.Tags, can.ID)
	}
	return skill
}
