package route_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// research is a capability of the seed's card.
func research() envelope.Capability {
	return envelope.Capability{
		ID: "skill:research", Version: "1.0", TrustLevel: envelope.TrustSandbox,
		Tags: []string{"market", "competitive", "fintech"}, Tools: []string{"mcp:browser", "mcp:files"},
	}
}

func researcher(id string) route.Candidate {
	return route.Candidate{ID: id, Capabilities: []envelope.Capability{research()}, Slots: 2, Sandbox: true, Network: envelope.NetworkRestricted}
}

// CLUTCH-43, CLUTCH-44, CLUTCH-60, CLUTCH-61, CLUTCH-62, CLUTCH-78, CLUTCH-79: each filter
// excludes a candidate, and the exclusion names it.
func TestEachFilterExcludesByName(t *testing.T) {
	needs := route.Need{Requires: []string{"skill:research"}}
	rows := []struct {
		filter string
		need   func(*route.Need)
		change func(*route.Candidate)
	}{
		{"named", func(n *route.Need) { n.Agent = "other" }, nil},
		{"named", func(n *route.Need) { n.Among = []string{"other"} }, nil},
		{"named", func(n *route.Need) { n.Among = []string{} }, nil},
		{"named", func(n *route.Need) { n.Exclude = []string{"ken"} }, nil},
		{"enabled", nil, func(c *route.Candidate) { c.Disabled = "its manifest cannot be read" }},
		{"policy", nil, func(c *route.Candidate) { c.Refused = "sensitivity: is confidential" }},
		{"requires", func(n *route.Need) { n.Requires = []string{"skill:research", "skill:write"} }, nil},
		{"requires", func(n *route.Need) { n.Requires = []string{"skill:research@^2"} }, nil},
		{"requires", func(n *route.Need) { n.Requires = []string{"skill:research@nonsense"} }, nil},
		{"requires", func(n *route.Need) { n.Requires = []string{"skill:research@^1"} }, func(c *route.Candidate) { c.Capabilities[0].Version = "" }},
		{"sandbox", func(n *route.Need) { n.Sandbox = true }, func(c *route.Candidate) { c.Sandbox = false }},
		{"trust", func(n *route.Need) { n.Prod = true }, nil},
		{"trust", func(n *route.Need) { n.Prod, n.Requires = true, nil }, nil},
		{"tools", nil, func(c *route.Candidate) { c.Tools = []string{"mcp:files"} }},
		{"tools", nil, func(c *route.Candidate) { c.Tools = []string{} }},
		{"tools", nil, func(c *route.Candidate) { c.Tools = []string{"mcp:browser/open"} }},
		{"network", func(n *route.Need) { n.Network = envelope.NetworkNone }, nil},
		{"network", func(n *route.Need) { n.Network = envelope.NetworkRestricted }, func(c *route.Candidate) { c.Network = "" }},
		{"delegation", nil, func(c *route.Candidate) { c.Delegation = "is not among the allowed_agents of pm" }},
		{"lineage", nil, func(c *route.Candidate) { c.Lineage = "works on a task above" }},
		{"paused", nil, func(c *route.Candidate) { c.Paused = true }},
		{"login", nil, func(c *route.Candidate) { c.Login = true }},
		{"heartbeat", nil, func(c *route.Candidate) { c.Beat, c.Every = now.Add(-31*time.Second), 10 }},
		{"budget", nil, func(c *route.Candidate) { c.Budget = "has spent 5 of 5 tokens" }},
		{"hold", nil, func(c *route.Candidate) { c.Waits = "change_window" }},
		{"concurrency", nil, func(c *route.Candidate) { c.Running = 2 }},
	}
	statics, dynamics := route.Filters()
	unseen := append(statics, dynamics...)
	for _, row := range rows {
		n, c := needs, researcher("ken")
		if row.need != nil {
			row.need(&n)
		}
		if row.change != nil {
			row.change(&c)
		}
		d := route.Decide(n, []route.Candidate{c}, now)
		if d.Selected != "" || len(d.Excluded) != 1 || d.Excluded[0].Filter != row.filter || d.Excluded[0].Why == "" {
			t.Errorf("Decide = %+v; want ken excluded by %q", d, row.filter)
		}
		if isStatic := !slices.Contains(dynamics, row.filter); d.Capable == isStatic {
			t.Errorf("%s: capable = %t; want %t", row.filter, d.Capable, !isStatic)
		}
		unseen = slices.DeleteFunc(unseen, func(name string) bool { return name == row.filter })
	}
	if len(unseen) > 0 {
		t.Errorf("no row for the filters %q", unseen)
	}
}

// Each candidate is just within what a filter allows.
func TestACandidateAtALimitIsSelected(t *testing.T) {
	for what, change := range map[string]func(*route.Need, *route.Candidate){
		"the widest network that the task allows": func(n *route.Need, c *route.Candidate) { n.Network = c.Network },
		"a narrower network": func(n *route.Need, c *route.Candidate) {
			n.Network, c.Network = envelope.NetworkRestricted, envelope.NetworkNone
		},
		"three heartbeats missed": func(_ *route.Need, c *route.Candidate) { c.Beat, c.Every = now.Add(-30*time.Second), 10 },
		"one free slot":           func(_ *route.Need, c *route.Candidate) { c.Running, c.Slots = 1, 2 },
		"all tools of its servers": func(_ *route.Need, c *route.Candidate) {
			c.Tools = []string{"mcp:browser/*", "mcp:files/*"}
		},
		"slots without a limit": func(_ *route.Need, c *route.Candidate) { c.Running, c.Slots = 7, 0 },
	} {
		n, c := route.Need{}, researcher("ken")
		change(&n, &c)
		if d := route.Decide(n, []route.Candidate{c}, now); d.Selected != "ken" {
			t.Errorf("with %s: Decide = %+v; want ken", what, d)
		}
	}
}

// CLUTCH-43: the first filter that excludes is the one that is recorded.
func TestTheFirstFailureIsRecorded(t *testing.T) {
	c := researcher("ken")
	c.Disabled, c.Paused, c.Running = "no manifest", true, 2
	if d := route.Decide(route.Need{Requires: []string{"skill:x"}}, []route.Candidate{c}, now); d.Excluded[0].Filter != "enabled" {
		t.Errorf("excluded by %q; want enabled", d.Excluded[0].Filter)
	}
}

// CLUTCH-44, CLUTCH-79: a requirement matches an id, and a version only with a range.
func TestARequirementMatchesIDsAndRanges(t *testing.T) {
	for _, row := range []struct {
		version, wanted string
		want            bool
	}{
		{"1.0", "skill:research", true}, {"", "skill:research", true}, {"1.0", "research", false},
		{"1.0", "skill:research@^1", true}, {"1.3.2", "skill:research@^1.2", true}, {"1.1", "skill:research@^1.2", false},
		{"2.0.0", "skill:research@>=1 <2", false}, {"^1.2", "skill:research@^1.2", true}, {"x", "skill:research@^1", false},
	} {
		have := research()
		have.Version = row.version
		if got := route.Satisfies(have, row.wanted); got != row.want {
			t.Errorf("Satisfies(version %q, %q) = %t; want %t", row.version, row.wanted, got, row.want)
		}
	}
}

// CLUTCH-45: the scores of the seed's example of section 4.3. The seed's own preferences
// match: its card has the tool mcp:browser and the tag fintech.
func TestTheSeedsExampleHasTheSeedsScores(t *testing.T) {
	ken, second := researcher("ken"), researcher("research-2")
	ken.Settled, ken.Good = 50, 42
	second.Settled, second.Good = 50, 35
	n := route.Need{Requires: []string{"skill:research"}, Prefers: []string{"tool:browser", "domain:fintech"}}
	d := route.Decide(n, []route.Candidate{second, ken}, now)
	want := route.Decision{
		Selected: "ken", Candidates: []string{"ken", "research-2"}, Capable: true,
		Reason: "matched requires[skill:research], highest score",
		Scores: map[string]float64{"ken": 0.92, "research-2": 0.85}, Excluded: []route.Exclusion{},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("Decide (-want +got):\n%s", diff)
	}
}

// CLUTCH-45: the score of each preference, with and without the prefix.
func TestAPreferenceRaisesTheScore(t *testing.T) {
	for _, row := range []struct {
		prefers []string
		load    int
		want    float64
	}{
		{nil, 0, 1}, {nil, 1, 0.75},
		{[]string{"tool:browser"}, 0, 1}, {[]string{"mcp:browser"}, 0, 1}, {[]string{"browser"}, 0, 1},
		{[]string{"domain:fintech"}, 0, 1}, {[]string{"fintech"}, 0, 1}, {[]string{"skill:research"}, 0, 1},
		{[]string{"tool:shell"}, 0, 0.909091}, {[]string{"fintech", "tool:shell"}, 0, 0.916667},
		{[]string{"fintech", "fintech"}, 1, 0.75},
	} {
		c := researcher("ken")
		c.Running = row.load
		if d := route.Decide(route.Need{Prefers: row.prefers}, []route.Candidate{c}, now); d.Scores["ken"] != row.want {
			t.Errorf("prefers %q at load %d: score %v; want %v", row.prefers, row.load, d.Scores["ken"], row.want)
		}
	}
}

// Without a limit of slots, each further run raises the load by less.
func TestTheLoadOfAnAgentWithoutALimitGrowsWithItsRuns(t *testing.T) {
	for running, want := range map[int]float64{0: 1, 1: 0.75, 3: 0.625, 4: 0.6} {
		c := researcher("ken")
		c.Running, c.Slots = running, 0
		if d := route.Decide(route.Need{}, []route.Candidate{c}, now); d.Scores["ken"] != want {
			t.Errorf("%d runs: score %v; want %v", running, d.Scores["ken"], want)
		}
	}
}

// The reason names the first five agents that a filter excludes.
func TestTheReasonNamesFiveAgentsOfAFilter(t *testing.T) {
	var all []route.Candidate
	for n, want := range []string{
		"there is no agent", "a1", "a1, a2", "a1, a2, a3", "a1, a2, a3, a4", "a1, a2, a3, a4, a5",
		"a1, a2, a3, a4, a5 and 1 more", "a1, a2, a3, a4, a5 and 2 more",
	} {
		if n > 0 {
			c := researcher(fmt.Sprint("a", n))
			c.Paused = true
			all, want = append(all, c), "excluded by paused: "+want
		}
		if d := route.Decide(route.Need{}, all, now); d.Reason != want {
			t.Errorf("%d agents: reason %q; want %q", n, d.Reason, want)
		}
	}
}

// CLUTCH-46: each tie decides where all before it are equal.
func TestEachTieDecidesAlone(t *testing.T) {
	for _, row := range []struct {
		reason string
		change func(winner, loser *route.Candidate)
	}{
		{"highest score", func(_, l *route.Candidate) { l.Running = 1 }},
		{"no recent faults", func(_, l *route.Candidate) { l.Faults, l.Fault = 3, now.Add(-9*time.Minute) }},
		{"lowest load", func(w, l *route.Candidate) { // the same score from a lower rate and a lower load
			w.Settled, w.Good = 2, 1 // ok 0.5: 0.75
			l.Running = 1            // load 0.5: 0.75
		}},
		{"highest success rate", func(w, l *route.Candidate) { // scores are rounded to 1e-6, rates are not
			w.Settled, w.Good = 50_000_000, 49_999_999
			l.Settled, l.Good = 50_000_000, 49_999_998
		}},
		{"longest not selected", func(w, l *route.Candidate) { w.Last, l.Last = now.Add(-2*time.Hour), now.Add(-time.Hour) }},
		{"longest not selected", func(_, l *route.Candidate) { l.Last = now }},
		{"first by id", func(w, l *route.Candidate) {}},
	} {
		winner, loser := researcher("b"), researcher("c")
		if row.reason != "first by id" {
			loser.ID = "a" // the last tie alone would choose the other one
		}
		row.change(&winner, &loser)
		d := route.Decide(route.Need{}, []route.Candidate{loser, winner}, now)
		if d.Selected != "b" || d.Reason != row.reason {
			t.Errorf("Decide = %q, %q; want b by %q", d.Selected, d.Reason, row.reason)
		}
	}
}

// An agent is no longer degraded ten minutes after its last fault.
func TestFaultsAreForgotten(t *testing.T) {
	good, bad := researcher("b"), researcher("a")
	bad.Faults, bad.Fault = 5, now.Add(-10*time.Minute)
	if d := route.Decide(route.Need{}, []route.Candidate{good, bad}, now); d.Selected != "a" {
		t.Errorf("selected %q; want a", d.Selected)
	}
}

// CLUTCH-47: a task that names its agent gets it, however busy, if the static filters let it.
func TestANamedAgentIsNotScored(t *testing.T) {
	ken, other := researcher("ken"), researcher("other")
	ken.Running, ken.Paused = 2, true
	n := route.Need{Agent: "ken", Requires: []string{"skill:research"}}
	d := route.Decide(n, []route.Candidate{ken, other}, now)
	if d.Selected != "ken" || len(d.Scores) != 0 || d.Reason != "named by the task" {
		t.Errorf("Decide = %+v; want ken without a score", d)
	}
	n.Requires = []string{"skill:write"}
	d = route.Decide(n, []route.Candidate{ken}, now)
	if d.Selected != "" || d.Capable || d.Reason != "excluded by requires: ken" {
		t.Errorf("Decide = %+v; want ken refused by requires", d)
	}
}

// A hold that ends says when to decide again.
func TestADecisionWithoutAnAgentSaysWhenToDecideAgain(t *testing.T) {
	a, b := researcher("a"), researcher("b")
	a.Waits, a.Until = "provider_limit", now.Add(time.Hour)
	b.Waits, b.Until = "change_window", now.Add(time.Minute)
	d := route.Decide(route.Need{}, []route.Candidate{a, b}, now)
	if d.Selected != "" || !d.Capable || !d.Until.Equal(now.Add(time.Minute)) {
		t.Errorf("Decide = %+v; want nobody until %s", d, now.Add(time.Minute))
	}
}

// The order of the candidates never matters.
func FuzzTheOrderOfCandidatesDoesNotMatter(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, seed, order uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := route.Need{Requires: pick(r, "skill:a", "skill:b@^1"), Prefers: pick(r, "tool:x", "domain:y", "skill:a"), Sandbox: r.IntN(4) == 0}
		var all []route.Candidate
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			all = append(all, randomCandidate(r, id))
		}
		want := route.Decide(n, all, now)
		rand.New(rand.NewPCG(order, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if diff := cmp.Diff(want, route.Decide(n, all, now)); diff != "" {
			t.Fatalf("another order decides otherwise (-first +second):\n%s", diff)
		}
		if got := want.Selected; got != "" && (!slices.Contains(want.Candidates, got) || slices.ContainsFunc(want.Excluded, func(e route.Exclusion) bool { return e.Agent == got })) {
			t.Fatalf("selected %q of %+v", got, want)
		}
		if len(want.Candidates)+len(want.Excluded) != len(all) {
			t.Fatalf("%d candidates and %d exclusions; want %d", len(want.Candidates), len(want.Excluded), len(all))
		}
	})
}

func pick(r *rand.Rand, all ...string) (some []string) {
	for _, s := range all {
		if r.IntN(2) == 0 {
			some = append(some, s)
		}
	}
	return some
}

func randomCandidate(r *rand.Rand, id string) route.Candidate {
	c := route.Candidate{ID: id, Slots: r.IntN(3), Running: r.IntN(3), Sandbox: r.IntN(2) == 0, Paused: r.IntN(5) == 0}
	for _, capability := range pick(r, "skill:a", "skill:b") {
		c.Capabilities = append(c.Capabilities, envelope.Capability{ID: capability, Version: "1.1", Tools: pick(r, "mcp:x"), Tags: pick(r, "y")})
	}
	if c.Settled = r.IntN(4); c.Settled > 0 {
		c.Good = r.IntN(c.Settled)
	}
	if r.IntN(2) == 0 {
		c.Last = now.Add(-time.Duration(r.IntN(3)) * time.Hour)
	}
	c.Faults, c.Fault = r.IntN(5), now.Add(-time.Duration(r.IntN(20))*time.Minute)
	return c
}
