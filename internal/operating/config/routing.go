package config

import (
	"fmt"
	"os"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/sandboxing/sandbox"
)

// Routing is how the agents of tasks are chosen that name none.
type Routing struct {
	AINL    string        `mapstructure:"ainl"`
	Sandbox string        `mapstructure:"sandbox"`
	Prod    []string      `mapstructure:"prod"`
	Network string        `mapstructure:"network"`
	Timeout time.Duration `mapstructure:"timeout"`
}

// A Group is agents of which one gets a task for the group.
type Group struct {
	Name   string   `mapstructure:"name"`
	Agents []string `mapstructure:"agents"`
}

func networks() (names []string) {
	for _, n := range envelope.Networks() {
		names = append(names, string(n))
	}
	return names
}

// checkRouting checks the sections routing and groups.
func (c *Config) checkRouting() []error {
	checks := []error{
		choice("routing.ainl", c.Routing.AINL),
		choice("routing.sandbox", c.Routing.Sandbox),
		choice("routing.network", c.Routing.Network),
		positive("routing.timeout", c.Routing.Timeout),
	}
	for i, g := range c.Groups {
		key := fmt.Sprintf("groups[%d]", i)
		switch {
		case g.Name == "":
			checks = append(checks, wrong(key+".name", "required"))
		case slices.IndexFunc(c.Groups, func(other Group) bool { return other.Name == g.Name }) != i:
			checks = append(checks, wrong(key+".name", "%q is there twice", g.Name))
		}
		if len(g.Agents) == 0 {
			checks = append(checks, wrong(key+".agents", "required, a list of agents"))
		}
		for j, id := range g.Agents {
			if !slices.ContainsFunc(c.Agents, func(e Entry) bool { return e.ID == id || e.replica == id }) {
				checks = append(checks, wrong(fmt.Sprintf("%s.agents[%d]", key, j), "no agent %q is configured", id))
			}
		}
	}
	return checks
}

// GroupsByName returns the agents of each group, sorted. A group that names an entry with
// replicas has all of them.
func (c *Config) GroupsByName() map[string][]string {
	groups := map[string][]string{}
	for _, g := range c.Groups {
		ids := []string{}
		for _, e := range c.Agents {
			if slices.Contains(g.Agents, e.ID) || e.replica != "" && slices.Contains(g.Agents, e.replica) {
				ids = append(ids, e.ID)
			}
		}
		slices.Sort(ids)
		groups[g.Name] = ids
	}
	return groups
}

// addCard reads the card of an entry. An invalid card disables its own agent only, as a
// manifest does: it would be without its limits.
func (c *Config) addCard(m *Agent, e Entry) {
	text, err := os.ReadFile(c.Resolve(e.Card))
	if err != nil {
		m.disable(fmt.Sprintf("card: %v", err))
		return
	}
	card, findings := envelope.DecodeCard(text)
	switch {
	case findings.Refused():
		m.disable(fmt.Sprintf("card %s: %s", e.Card, findings.Refusals()))
		return
	case card.AgentID != e.ID && (e.replica == "" || card.AgentID != e.replica):
		m.disable(fmt.Sprintf("its card is for the agent %q", card.AgentID))
		return
	}
	card.AgentID = e.ID
	m.Card, m.Subject.Card = &card, card.Limits
	m.Warnings = append(m.Warnings, findings...)
	if own := m.Binding.Timeout; card.Limits.Runtime > 0 && (own == 0 || card.Limits.Runtime < own) {
		m.Binding.Timeout = card.Limits.Runtime
	}
}

// Sandboxed reports whether the kernel keeps each run of the agent in a sandbox.
func (m *Agent) Sandboxed() bool {
	s := m.Binding.Sandbox
	return s.Profile != "" && s.Profile != sandbox.None && s.Missing != sandbox.Open
}

// Network returns what the runs of the agent may reach, as its sandbox enforces it. What a card
// says is a claim of the agent, and doesn't count.
func (m *Agent) Network() envelope.Network {
	switch {
	case !m.Sandboxed():
		return envelope.NetworkAllowed
	case len(m.Binding.Sandbox.Network)+len(m.Binding.Sandbox.SetupNetwork) > 0:
		return envelope.NetworkRestricted
	}
	return envelope.NetworkNone
}
