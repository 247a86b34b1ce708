package envelope_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

// CLUTCH-24, CLUTCH-25, CLUTCH-26: the card of the seed's section 1.4.
func TestTheSeedsCardIsReadWhole(t *testing.T) {
	raw, err := os.ReadFile("testdata/card-ken.json")
	if err != nil {
		t.Fatal(err)
	}
	card, findings := envelope.DecodeCard(raw)
	want := envelope.Card{
		AgentID: "ken", Name: "Ken", Description: "Research specialist",
		Endpoints: map[string]string{"a2a": "http://ken:8080/a2a", "clutch": "http://ken:8080/clutch"},
		Capabilities: []envelope.Capability{{
			ID: "skill:research", Version: "1.0", Tags: []string{"market", "competitive", "fintech"},
			Tools: []string{"mcp:browser", "mcp:files"}, TrustLevel: envelope.TrustSandbox, CostHint: "medium",
		}, {ID: "tool:mcp", Servers: []string{"mcp:browser", "mcp:files"}}},
		Limits:  envelope.CardLimits{Concurrency: 2, Runtime: 10 * time.Minute},
		Sandbox: true, Network: envelope.NetworkRestricted,
	}
	if diff := cmp.Diff(want, card); diff != "" || len(findings) != 0 {
		t.Errorf("DecodeCard: findings %v, (-want +got):\n%s", findings, diff)
	}
}

// CLUTCH-24, CLUTCH-27: a wrong value in a card is refused by its field, and an unknown field
// gives a warning.
func TestAFieldOfACardIsRefusedByName(t *testing.T) {
	card := func(rest string) string {
		return `{"v":"clutch/0.1","agent_id":"agent:ken","capabilities":[{"id":"skill:x"}]` + rest + `}`
	}
	for _, row := range []struct{ raw, refusal, warning string }{
		{card(""), "", ""},
		{card(`,"endpoints":{}`), "", ""},
		{card(`,"limits":{"max_tokens":100,"max_cost":1.259}`), "", ""},
		{`{"agent_id":"agent:ken","capabilities":[]}`, "v: required", ""},
		{`{"v":"clutch/0.2","agent_id":"agent:ken","capabilities":[]}`, `v: is not "clutch/0.1"`, ""},
		{`{"v":"clutch/0.1","agent_id":"ken","capabilities":[]}`, "agent_id: must be", ""},
		{`{"v":"clutch/0.1","capabilities":[]}`, "agent_id: required", ""},
		{`{"v":"clutch/0.1","agent_id":"agent:ken"}`, "capabilities: required", ""},
		{`{"v":"clutch/0.1","agent_id":"agent:ken","capabilities":[{}]}`, "capabilities[0].id: required", ""},
		{card(`,"limits":{"max_concurrency":0}`), "limits.max_concurrency: must be more than 0", ""},
		{card(`,"limits":{"max_runtime_sec":0.5}`), "limits.max_runtime_sec: must be a whole number", ""},
		{card(`,"limits":{"max_cost":"1"}`), "limits.max_cost: must be an amount of dollars", ""},
		{card(`,"limits":{"max_cost":-1}`), "limits.max_cost: must be an amount of dollars", ""},
		{card(`,"limits":{"max_cost":1e3}`), "limits.max_cost: must be an amount of dollars", ""},
		{card(`,"limits":{"max_concurency":1}`), "", "limits.max_concurency: is not a field we know"},
		{card(`,"security":{"sandbox":"yes"}`), "security.sandbox: must be true or false", ""},
		{card(`,"security":{"network":"open"}`), "security.network: must be one of", ""},
		{card(`,"colour":"red"`), "", "colour: is not a field we know"},
		{`[]`, "must be a JSON object", ""},
	} {
		_, findings := envelope.DecodeCard([]byte(row.raw))
		refusal, warning := findings.Refusals().String(), findings.Warnings().String()
		if (refusal == "") != (row.refusal == "") || !strings.Contains(refusal, row.refusal) || (warning == "") != (row.warning == "") || !strings.Contains(warning, row.warning) {
			t.Errorf("DecodeCard(%s) refuses %q, warns %q; want %q, %q", row.raw, refusal, warning, row.refusal, row.warning)
		}
	}
}

// CLUTCH-27: an amount of dollars becomes whole cents, never more than the card says.
func TestTheCostOfACardIsCents(t *testing.T) {
	for dollars, want := range map[string]int64{"1": 100, "1.2": 120, "1.259": 125, "0": 0, "0.01": 1} {
		card, findings := envelope.DecodeCard([]byte(`{"v":"clutch/0.1","agent_id":"agent:k","capabilities":[],"limits":{"max_cost":` + dollars + `}}`))
		if got := card.Limits.Budget.USDCents; len(findings) > 0 || got == nil || *got != want {
			t.Errorf("max_cost %s: %v cents, findings %v; want %d", dollars, got, findings, want)
		}
	}
}
