// Package route chooses the agent of a task that names none. It uses its arguments only: the
// same need, candidates and time always give the same decision, in whatever order the
// candidates come.
//
//	Decide(need, candidates, now) -> decision
//
// A candidate first passes the static filters, which a wait doesn't change, then the dynamic
// ones, then a score decides, then ties (CLUTCH-43 to CLUTCH-47).
package route

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
)

// Algorithm names the rules of Decide. A recorded decision of another one is not recomputed.
const Algorithm = "mailboxd/1"

// A Need is what a task needs of its agent.
type Need struct {
	Agent    string           `json:"agent,omitzero"`    // the agent that the task names; "" for any
	Among    []string         `json:"among,omitzero"`    // the agents of its group; nil: all
	Exclude  []string         `json:"exclude,omitempty"` // agents that failed at it
	Requires []string         `json:"requires,omitempty"`
	Prefers  []string         `json:"prefers,omitempty"`
	Sandbox  bool             `json:"sandbox,omitzero"` // its agent must run in a sandbox
	Prod     bool             `json:"prod,omitzero"`    // its environment needs the trust level prod
	Network  envelope.Network `json:"network,omitzero"` // the widest network that it allows; "" for any
}

// A Candidate is an agent with the facts that a decision needs. The texts say why a filter
// excludes it; "" if the filter doesn't.
type Candidate struct {
	ID           string                `json:"id"`
	Capabilities []envelope.Capability `json:"capabilities,omitempty"`
	Tools        []string              `json:"tools,omitzero"` // that the task may use there; nil: any
	Sandbox      bool                  `json:"sandbox,omitzero"`
	Network      envelope.Network      `json:"network,omitzero"` // "" counts as the widest

	Disabled   string `json:"disabled,omitzero"`   // its configuration can't be used
	Refused    string `json:"refused,omitzero"`    // policy refuses the task there
	Delegation string `json:"delegation,omitzero"` // the requester may not delegate to it
	Lineage    string `json:"lineage,omitzero"`    // the tasks above forbid it

	Paused  bool      `json:"paused,omitzero"`
	Login   bool      `json:"login,omitzero"`  // one of its tasks waits for a login
	Beat    time.Time `json:"beat,omitzero"`   // its latest heartbeat; zero: it sends none
	Every   int       `json:"every,omitzero"`  // the seconds between two heartbeats
	Budget  string    `json:"budget,omitzero"` // its budget of the day is used up
	Waits   string    `json:"waits,omitzero"`  // the task would be held there for another reason
	Until   time.Time `json:"until,omitzero"`  // the end of Waits
	Running int       `json:"running"`         // runs, and tasks that were given to it and haven't begun
	Slots   int       `json:"slots"`           // runs at the same time; 0: not limited

	Settled int       `json:"settled"`         // the number of its latest runs, at most 50
	Good    int       `json:"good"`            // those without a fault of the agent
	Faults  int       `json:"faults,omitzero"` // at the end of those runs, without a good one between
	Fault   time.Time `json:"fault,omitzero"`  // when the last of them ended
	Last    time.Time `json:"last,omitzero"`   // when it was selected last
}

// manyFaults and faultLife say when an agent is degraded: so many faults one after another,
// and the last not so long ago.
const (
	manyFaults = 3
	faultLife  = 10 * time.Minute
)

// Degraded reports whether the latest runs of the agent failed by its fault.
func (c *Candidate) Degraded(now time.Time) bool {
	return c.Faults >= manyFaults && now.Sub(c.Fault) < faultLife
}

// missedBeats is how many heartbeats an agent may miss (CLUTCH-78).
const missedBeats = 3

// Silent reports whether the agent announced heartbeats and stopped sending them.
func (c *Candidate) Silent(now time.Time) bool {
	return !c.Beat.IsZero() && now.Sub(c.Beat) > missedBeats*time.Duration(c.Every)*time.Second
}

// load returns the share of the slots that are taken, between 0 and 1.
func (c *Candidate) load() float64 {
	if c.Slots <= 0 {
		return float64(c.Running) / float64(c.Running+1)
	}
	return min(1, float64(c.Running)/float64(c.Slots))
}

// ok returns the share of the latest runs that ended without a fault of the agent.
func (c *Candidate) ok() float64 {
	if c.Settled <= 0 {
		return 1
	}
	return float64(c.Good) / float64(c.Settled)
}

// An Exclusion says which filter excluded a candidate first.
type Exclusion struct {
	Agent  string `json:"agent"`
	Filter string `json:"filter"`
	Why    string `json:"why"`
}

// A Decision is the choice of an agent, or the reason why there is none. The zero value selects
// no agent.
type Decision struct {
	Selected   string             `json:"selected,omitzero"`
	Candidates []string           `json:"candidates"` // that passed all filters, by id
	Reason     string             `json:"reason"`
	Scores     map[string]float64 `json:"scores"`
	Excluded   []Exclusion        `json:"excluded"` // by the id of the agent
	Capable    bool               `json:"capable"`  // a candidate passed the static filters
	Until      time.Time          `json:"until,omitzero"`
}

// Decide chooses the agent of a task. A task that names its agent gets this one, if it passes
// the static filters.
func Decide(n Need, all []Candidate, now time.Time) Decision {
	d := Decision{Candidates: []string{}, Scores: map[string]float64{}, Excluded: []Exclusion{}}
	var free []scored
	for _, c := range slices.SortedFunc(slices.Values(all), byID) {
		if by, why := firstFailure(static, &n, &c, now); by != "" {
			d.Excluded = append(d.Excluded, Exclusion{c.ID, by, why})
			continue
		}
		d.Capable = true
		if n.Agent != "" {
			d.Selected, d.Candidates, d.Reason = c.ID, []string{c.ID}, "named by the task"
			continue
		}
		if by, why := firstFailure(dynamic, &n, &c, now); by != "" {
			d.Excluded = append(d.Excluded, Exclusion{c.ID, by, why})
			d.Until = earliest(d.Until, c.Until)
			continue
		}
		s := score(&n, &c)
		free, d.Candidates, d.Scores[c.ID] = append(free, scored{c, s, c.Degraded(now)}), append(d.Candidates, c.ID), s
	}
	if n.Agent == "" && len(free) > 0 {
		d.Selected, d.Reason = choose(&n, free)
	}
	if d.Selected == "" {
		d.Reason = d.whyNobody()
	}
	return d
}

func byID(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) }

// earliest returns the earlier of two times; a zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// score returns how well a candidate fits, rounded so that all machines agree.
func score(n *Need, c *Candidate) float64 {
	prefers := slices.Compact(slices.Sorted(slices.Values(n.Prefers)))
	matches := 0.0
	for _, item := range prefers {
		if c.has(item) {
			matches++
		}
	}
	s := (1 + 0.1*matches) * (1 - 0.5*c.load()) * (0.5 + 0.5*c.ok()) / (1 + 0.1*float64(len(prefers)))
	return math.Round(1e6*s) / 1e6
}

// has reports whether a preferred item names something of the candidate (CLUTCH-45): an id, a
// tag, a tool or a server of a capability, with or without its prefix.
func (c *Candidate) has(item string) bool {
	for _, capability := range c.Capabilities {
		if same(item, capability.ID) {
			return true
		}
		for _, names := range [][]string{capability.Tags, capability.Tools, capability.Servers} {
			if slices.ContainsFunc(names, func(name string) bool { return same(item, name) }) {
				return true
			}
		}
	}
	return false
}

func same(a, b string) bool { return a == b || stripped(a) == stripped(b) }

// stripped returns a name without the prefix of a domain, a tool or a server.
func stripped(name string) string {
	for _, prefix := range []string{"domain:", "tool:", "mcp:"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// A scored is a candidate with its score.
type scored struct {
	Candidate
	score    float64
	degraded bool
}

// ties are the comparisons of two candidates, in order. The first that differs decides; a
// result below 0 prefers the first candidate (CLUTCH-46).
var ties = []struct {
	name    string
	compare func(a, b *scored) int
}{
	{"highest score", func(a, b *scored) int { return cmp.Compare(b.score, a.score) }},
	{"no recent faults", func(a, b *scored) int { return cmp.Compare(number(a.degraded), number(b.degraded)) }},
	{"lowest load", func(a, b *scored) int { return cmp.Compare(a.load(), b.load()) }},
	{"highest success rate", func(a, b *scored) int { return cmp.Compare(b.ok(), a.ok()) }},
	{"longest not selected", func(a, b *scored) int { return a.Last.Compare(b.Last) }},
	{"first by id", func(a, b *scored) int { return cmp.Compare(a.ID, b.ID) }},
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// choose returns the best candidate, and what decided against the next one.
func choose(n *Need, free []scored) (selected, reason string) {
	by := "only candidate"
	slices.SortFunc(free, func(a, b scored) int {
		for _, t := range ties {
			if order := t.compare(&a, &b); order != 0 {
				return order
			}
		}
		return 0
	})
	if len(free) > 1 {
		for _, t := range ties {
			if t.compare(&free[0], &free[1]) != 0 {
				by = t.name
				break
			}
		}
	}
	if len(n.Requires) > 0 {
		by = fmt.Sprintf("matched requires[%s], %s", strings.Join(n.Requires, ", "), by)
	}
	return free[0].ID, by
}

// whyNobody says how many candidates each filter excluded.
func (d *Decision) whyNobody() string {
	if len(d.Excluded) == 0 {
		return "there is no agent"
	}
	by := map[string][]string{}
	for _, e := range d.Excluded {
		by[e.Filter] = append(by[e.Filter], e.Agent)
	}
	var parts []string
	for _, filter := range slices.Sorted(maps.Keys(by)) {
		agents := by[filter]
		const most = 5
		more := ""
		if len(agents) > most {
			more = fmt.Sprintf(" and %d more", len(agents)-most)
		}
		parts = append(parts, fmt.Sprintf("%s: %s%s", filter, strings.Join(agents[:min(most, len(agents))], ", "), more))
	}
	return "excluded by " + strings.Join(parts, "; ")
}
