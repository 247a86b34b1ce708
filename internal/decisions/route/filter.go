package route

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
)

// A filter says why a candidate is excluded; "" if it is not.
type filter struct {
	name string
	why  func(n *Need, c *Candidate, now time.Time) string
}

// static are the filters whose answer a wait doesn't change, in their order.
var static = []filter{
	{"named", named},
	{"enabled", func(_ *Need, c *Candidate, _ time.Time) string { return c.Disabled }},
	{"policy", func(_ *Need, c *Candidate, _ time.Time) string { return c.Refused }},
	{"requires", requires},
	{"sandbox", sandboxed},
	{"trust", trusted},
	{"tools", tools},
	{"network", network},
	{"delegation", func(_ *Need, c *Candidate, _ time.Time) string { return c.Delegation }},
	{"lineage", func(_ *Need, c *Candidate, _ time.Time) string { return c.Lineage }},
}

// dynamic are the filters whose answer changes with time, in their order.
var dynamic = []filter{
	{"paused", func(_ *Need, c *Candidate, _ time.Time) string { return when(c.Paused, "is paused") }},
	{"login", func(_ *Need, c *Candidate, _ time.Time) string { return when(c.Login, "needs a login") }},
	{"heartbeat", func(_ *Need, c *Candidate, now time.Time) string {
		return when(c.Silent(now), "sends no heartbeats any more")
	}},
	{"budget", func(_ *Need, c *Candidate, _ time.Time) string { return c.Budget }},
	{"hold", func(_ *Need, c *Candidate, _ time.Time) string { return c.Waits }},
	{"concurrency", busy},
}

// Filters returns the names of the static and the dynamic filters.
func Filters() (first, then []string) {
	name := func(all []filter) (names []string) {
		for _, f := range all {
			names = append(names, f.name)
		}
		return names
	}
	return name(static), name(dynamic)
}

// firstFailure returns the first filter that excludes a candidate; "" for none.
func firstFailure(filters []filter, n *Need, c *Candidate, now time.Time) (by, why string) {
	for _, f := range filters {
		if why := f.why(n, c, now); why != "" {
			return f.name, why
		}
	}
	return "", ""
}

func when(excluded bool, why string) string {
	if excluded {
		return why
	}
	return ""
}

// named: the agent is the named one, or of the named group, and did not fail at the task.
func named(n *Need, c *Candidate, _ time.Time) string {
	switch {
	case n.Agent != "" && c.ID != n.Agent:
		return "is not the agent that the task names"
	case n.Agent == "" && n.Among != nil && !slices.Contains(n.Among, c.ID):
		return "is not in the group"
	case slices.Contains(n.Exclude, c.ID):
		return "has failed at this task"
	}
	return ""
}

// requires: the agent has all required capabilities (CLUTCH-44).
func requires(n *Need, c *Candidate, _ time.Time) string {
	for _, wanted := range n.Requires {
		if !slices.ContainsFunc(c.Capabilities, func(have envelope.Capability) bool { return Satisfies(have, wanted) }) {
			return fmt.Sprintf("has no capability %.80q", wanted)
		}
	}
	return ""
}

// Satisfies reports whether a capability is a required one: "skill:x", or "skill:x@^1.2" with
// a range of versions (CLUTCH-79).
func Satisfies(have envelope.Capability, wanted string) bool {
	id, versions, ranged := strings.Cut(wanted, "@")
	if have.ID != id {
		return false
	}
	if !ranged || have.Version == versions {
		return true
	}
	allowed, err := semver.NewConstraint(versions)
	if err != nil {
		return false
	}
	version, err := semver.NewVersion(have.Version)
	return err == nil && allowed.Check(version)
}

// matched returns the capabilities that the task requires.
func matched(n *Need, c *Candidate) (all []envelope.Capability) {
	for _, have := range c.Capabilities {
		if slices.ContainsFunc(n.Requires, func(wanted string) bool { return Satisfies(have, wanted) }) {
			all = append(all, have)
		}
	}
	return all
}

// sandboxed: a task that asks for a sandbox gets an agent in one (CLUTCH-60).
func sandboxed(n *Need, c *Candidate, _ time.Time) string {
	return when(n.Sandbox && !c.Sandbox, "does not run in a sandbox")
}

// trusted: a task of production needs capabilities with this trust level (CLUTCH-79).
func trusted(n *Need, c *Candidate, _ time.Time) string {
	if !n.Prod {
		return ""
	}
	isProd := func(have envelope.Capability) bool { return have.TrustLevel == envelope.TrustProd }
	if len(n.Requires) == 0 {
		return when(!slices.ContainsFunc(c.Capabilities, isProd), "has no capability with the trust level prod")
	}
	for _, wanted := range n.Requires {
		if !slices.ContainsFunc(c.Capabilities, func(have envelope.Capability) bool { return Satisfies(have, wanted) && isProd(have) }) {
			return fmt.Sprintf("has %.80q without the trust level prod", wanted)
		}
	}
	return ""
}

// tools: the task allows the tools that the matched capabilities need (CLUTCH-61).
func tools(n *Need, c *Candidate, _ time.Time) string {
	if c.Tools == nil {
		return ""
	}
	for _, have := range matched(n, c) {
		for _, tool := range have.Tools {
			if !policy.ListsTool(c.Tools, tool) {
				return fmt.Sprintf("needs the tool %.80q for %.80q, and the task does not allow it", tool, have.ID)
			}
		}
	}
	return ""
}

// network: the agent's network is no wider than the task allows (CLUTCH-62).
func network(n *Need, c *Candidate, _ time.Time) string {
	if rank(c.Network) <= rank(n.Network) {
		return ""
	}
	return fmt.Sprintf("has the network %q, and the task allows %q", orWidest(c.Network), n.Network)
}

// rank returns the position of a network, from the narrowest to the widest.
func rank(n envelope.Network) int { return slices.Index(envelope.Networks(), orWidest(n)) }

func orWidest(n envelope.Network) envelope.Network {
	if n == "" {
		return envelope.NetworkAllowed
	}
	return n
}

// busy: the agent has a free slot.
func busy(_ *Need, c *Candidate, _ time.Time) string {
	if c.Slots > 0 && c.Running >= c.Slots {
		return fmt.Sprintf("all %d slots are taken", c.Slots)
	}
	return ""
}
