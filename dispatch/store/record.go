package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
)

// recentPerAgent is how many runs of an agent count.
const recentPerAgent = 50

// maxRecent is how many runs of all agents are read at the first decision.
const maxRecent = 5000

// A Performance knows how the latest runs of each agent ended. It is read from the ledger when
// the first agent is chosen, and then follows the runs. The zero value is ready.
type Performance struct {
	mu     sync.Mutex // guards the fields below
	known  bool       // it was read
	agents map[string]*agentRuns
}

type agentRuns struct {
	faults []bool // of the latest runs, the oldest first
	fault  time.Time
	last   time.Time // when the agent was chosen, or began a run
}

// Ended records the end of a run; nil is none.
func (p *Performance) Ended(agent string, r *task.Run, kind envelope.Kind) {
	if r == nil || !r.Counts() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		p.add(agent, *r, kind)
	}
}

// add records a run. The caller holds mu.
func (p *Performance) add(agent string, r task.Run, kind envelope.Kind) {
	a := p.get(agent)
	fault := r.Fault(kind)
	if a.faults = append(a.faults, fault); len(a.faults) > recentPerAgent {
		a.faults = a.faults[1:]
	}
	if fault && r.Finished.After(a.fault) {
		a.fault = r.Finished
	}
	if r.Intent.After(a.last) {
		a.last = r.Intent
	}
}

func (p *Performance) get(agent string) *agentRuns {
	if p.agents == nil {
		p.agents = map[string]*agentRuns{}
	}
	if p.agents[agent] == nil {
		p.agents[agent] = &agentRuns{}
	}
	return p.agents[agent]
}

// Chosen records that an agent was chosen.
func (p *Performance) Chosen(agent string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.get(agent).last = now.UTC().Truncate(time.Microsecond)
}

// read reads the latest runs of the ledger, once.
func (s *Shared) readPerformance(ctx context.Context) error {
	p := &s.RecentRuns.Performance
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return nil
	}
	runs, err := s.Ledger.RecentRuns(ctx, maxRecent)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(runs) {
		if r.Run.Counts() {
			p.add(r.Agent, r.Run, r.Kind)
		}
	}
	p.known = true
	return nil
}

// describe sets what is known of the runs of a candidate.
func (p *Performance) describe(c *route.Candidate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.agents[c.ID]
	if a == nil {
		return
	}
	c.Settled, c.Last = len(a.faults), a.last
	for _, fault := range slices.Backward(a.faults) {
		if !fault {
			break
		}
		c.Faults++
	}
	for _, fault := range a.faults {
		if !fault {
			c.Good++
		}
	}
	if c.Faults > 0 {
		c.Fault = a.fault
	}
}
