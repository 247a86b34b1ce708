package agent_test

import (
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

func TestTheDigestOfAPlanDependsOnWhatARunMaySpendAndUse(t *testing.T) {
	digest := func(terms task.Terms) string {
		binding := agent.Binding{Command: []string{"/bin/true"}}
		return new(agent.Planner).PlanOf(envelope.Task{Hash: "h"}, binding, terms, "").Digest()
	}
	limit := func(n int64) *int64 { return &n }
	var digests []string
	for _, test := range []struct {
		name  string
		terms task.Terms
	}{
		{"no limits", task.Terms{}},
		{"3000 tokens", task.Terms{Budget: envelope.Budget{Tokens: limit(3000)}}},
		{"3001 tokens", task.Terms{Budget: envelope.Budget{Tokens: limit(3001)}}},
		{"no tokens at all", task.Terms{Budget: envelope.Budget{Tokens: limit(0)}}},
		{"3000 cents", task.Terms{Budget: envelope.Budget{USDCents: limit(3000)}}},
		{"3000 tokens and 3000 cents", task.Terms{Budget: envelope.Budget{Tokens: limit(3000), USDCents: limit(3000)}}},
		{"no tools", task.Terms{Tools: []string{}}},
		{"one tool", task.Terms{Tools: []string{"http"}}},
	} {
		got := digest(test.terms)
		if got != digest(test.terms) {
			t.Errorf("a plan with %s has two digests", test.name)
		}
		if slices.Contains(digests, got) {
			t.Errorf("a plan with %s has the digest of another plan", test.name)
		}
		digests = append(digests, got)
	}
}
