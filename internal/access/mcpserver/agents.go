package mcpserver

import "context"

// An Agent is what a model may know of an agent that it can send tasks to.
type Agent struct {
	ID          string   `json:"agent_id"`
	Description string   `json:"description,omitempty"` // what it is for; "" when nobody says
	When        string   `json:"when,omitempty"`        // when the requester shall send it tasks; "" when nobody says
	TaskTypes   []string `json:"task_types,omitempty"`  // that it takes; none: all
	Roles       []string `json:"roles,omitempty"`       // that it has; none: all
	Fetches     bool     `json:"fetches,omitzero"`      // an editor or a person fetches its tasks
}

// agentList is the answer of list_agents.
type agentList struct {
	Agents []Agent `json:"agents"`
}

// agentArgs are the arguments of list_agents: none.
type agentArgs struct{}

func (s *server) listAgents(context.Context, call, agentArgs) (agentList, error) {
	agents, err := s.Agents()
	if agents == nil {
		agents = []Agent{}
	}
	return agentList{agents}, err
}
