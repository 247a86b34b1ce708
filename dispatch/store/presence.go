package store

import (
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
)

// A Presence knows what configured agents announced about themselves (CLUTCH-34). Nobody proves
// who sent an announcement, so it only narrows what the configuration says. It is in memory: after
// a start of the daemon an agent announces itself again. The zero value is ready.
type Presence struct {
	Changed func() // is called after each announcement; nil: nobody is to know

	mu     sync.Mutex // guards agents
	agents map[string]*announced
}

// An announced is what an agent announced.
type announced struct {
	card    *envelope.Card
	since   time.Time // the latest announcement
	beat    time.Time // the latest heartbeat; zero: none
	every   int       // the seconds between two heartbeats
	offline bool
}

// defaultBeat is the time between two heartbeats that name none, in seconds.
const defaultBeat = 30

// Note records the announcement of a configured agent. Other messages mean nothing here.
func (p *Presence) Note(m *envelope.Message, now time.Time) {
	if m.Clutch == nil || m.Act != envelope.Announces && m.Act != envelope.Updates && m.Act != envelope.SendsHeartbeat {
		return
	}
	p.mu.Lock()
	if p.agents == nil {
		p.agents = map[string]*announced{}
	}
	a := p.agents[m.From]
	if a == nil {
		a = &announced{}
		p.agents[m.From] = a
	}
	a.since = now
	if m.Act == envelope.SendsHeartbeat {
		var said struct {
			Status   string  `json:"status"`
			Interval float64 `json:"interval_sec"`
		}
		_ = json.Unmarshal(m.Clutch.Payload, &said) // it may have other members
		a.beat, a.every, a.offline = now, defaultBeat, said.Status == "offline"
		if said.Interval >= 1 {
			a.every = int(min(said.Interval, 24*60*60))
		}
	}
	if m.Clutch.Card != nil {
		a.card = m.Clutch.Card
	}
	p.mu.Unlock()
	if p.Changed != nil {
		p.Changed()
	}
}

// Since returns when an agent announced something last; zero: not since the start of the daemon.
func (p *Presence) Since(agent string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.agents[agent]; a != nil {
		return a.since
	}
	return time.Time{}
}

// narrow narrows a candidate to what its agent announced. Heartbeats matter for an agent that the
// daemon doesn't run; the health of any other is known from its runs.
func (p *Presence) narrow(c *route.Candidate, isRun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.agents[c.ID]
	if a == nil {
		return
	}
	if !isRun {
		c.Beat, c.Every = a.beat, a.every
		if a.offline {
			c.Waits = "its agent announced that it is offline"
		}
	}
	if a.card == nil {
		return
	}
	c.Capabilities = slices.DeleteFunc(slices.Clone(c.Capabilities), func(own envelope.Capability) bool {
		return !slices.ContainsFunc(a.card.Capabilities, func(have envelope.Capability) bool { return have.ID == own.ID })
	})
	if most := a.card.Limits.Concurrency; most > 0 && (c.Slots == 0 || most < c.Slots) {
		c.Slots = most
	}
}
