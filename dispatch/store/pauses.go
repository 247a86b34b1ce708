package store

import (
	"sync"
	"time"

	"mailboxd/internal/running/schedule"
)

// Pauses knows the paused agents, as the ledger has them.
type Pauses struct {
	Holding  sync.Mutex      // held by the one worker that holds the tasks of paused agents
	Changing sync.Mutex      // held while a pause changes in the ledger and here, so that both end with the same value
	Limits   schedule.Limits // of providers
	Presence Presence        // of agents that announce themselves

	mu     sync.Mutex // guards agents
	agents map[string]bool
}

// NewPauses returns the pauses of some agents, or of Everyone.
func NewPauses(agents []string) *Pauses {
	p := &Pauses{agents: map[string]bool{}}
	for _, a := range agents {
		p.agents[a] = true
	}
	return p
}

// Has reports whether an agent is paused.
func (p *Pauses) Has(agent string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agents[agent] || p.agents[Everyone]
}

// Blocks reports whether an agent may start no run now: it is paused, or its provider has reached
// a usage limit.
func (p *Pauses) Blocks(agent string) bool {
	_, limited := p.Limits.Holds(agent, "", time.Now())
	return limited || p.Has(agent)
}

// Set begins or ends the pause of an agent, or of Everyone.
func (p *Pauses) Set(agent string, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused {
		p.agents[agent] = true
	} else {
		delete(p.agents, agent)
	}
}
