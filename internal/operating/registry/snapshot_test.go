package registry

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
)

// loadYAML reads a configuration file with this text.
func loadYAML(t *testing.T, yaml string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, "")
}

// snapshotOf is what a configuration comes to.
func snapshotOf(t *testing.T, yaml string) *snapshot {
	t.Helper()
	cfg, err := loadYAML(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	members := cfg.ReadAgents()
	agents, err := agent.New(config.Bindings(members), agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newSnapshot(agents, members, cfg.Policy.Rules(), 0)
}

func TestABudgetClassCapsHowManyRunAtOnce(t *testing.T) {
	manifest := writeManifest(t, `{"schema_version":"1.0","agent_id":"a","role_types":["x"],"budget_class":"low"}`)
	agents := "\nagents: [{id: a, manifest: " + manifest + ", concurrency: 5, exec: {command: [x]}}, {id: b, concurrency: 5, exec: {command: [x]}}]"
	for policy, want := range map[string]int{
		"{budget_classes: [{name: low, concurrency: 2}]}":               2,
		"{budget_classes: [{name: low, concurrency: 9}]}":               5,
		"{budget_classes: [{name: low}]}":                               5,
		"{budget_classes: [{name: low, concurrency: 2}], budget: warn}": 5,
		"{}": 5,
	} {
		r := snapshotOf(t, "policy: "+policy+agents)
		if got := r.limit("a"); got != want {
			t.Errorf("AINL-18: limit with policy %s = %d; want %d", policy, got, want)
		}
		if r.limit("b") != 5 || r.limit("nobody") != 1 {
			t.Errorf("limit(b) = %d, limit(nobody) = %d; want 5, 1", r.limit("b"), r.limit("nobody"))
		}
	}
}

func TestTheModeOfEveryControlComesFromItsKey(t *testing.T) {
	for _, control := range envelope.Controls() {
		yaml := "policy: {" + string(control) + ": warn}"
		if control == envelope.ControlChangeWindow {
			yaml = "policy: {change_window: {mode: warn}}"
		}
		r := snapshotOf(t, yaml)
		for _, other := range envelope.Controls() {
			want := envelope.Enforce
			if other == control {
				want = envelope.Warn
			}
			if got := r.rules.Modes[other]; got != want {
				t.Errorf("%s: mode of %s = %v; want %v", yaml, other, got, want)
			}
		}
	}
}

func TestADomainIsThatOfAManifestThatCounts(t *testing.T) {
	manifest := writeManifest(t, `{"schema_version":"1.0","agent_id":"a","role_types":["x"],"trust_domain":"internal"}`)
	r := snapshotOf(t, "agents: [{id: a, manifest: "+manifest+", exec: {command: [x]}}]")
	if got := r.rules.Domains["a"]; got != "internal" {
		t.Errorf("AINL-60: domain of a = %q; want internal", got)
	}
	r = snapshotOf(t, "agents: [{id: b, manifest: "+manifest+", exec: {command: [x]}}]")
	if got := r.rules.Domains["b"]; got != "" || r.subject("b").Unfit == "" {
		t.Errorf("AINL-60: domain of b, whose manifest is another's = %q; want none", got)
	}
}

func writeManifest(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// CLUTCH-26: the concurrency of a card counts where it is the least.
func TestACardCapsHowManyRunAtOnce(t *testing.T) {
	card := filepath.Join(t.TempDir(), "card.json")
	if err := os.WriteFile(card, []byte(`{"v":"clutch/0.1","agent_id":"agent:a","capabilities":[],"limits":{"max_concurrency":2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for own, want := range map[string]int{"1": 1, "2": 2, "5": 2} {
		r := snapshotOf(t, "agents: [{id: a, card: "+card+", concurrency: "+own+", exec: {command: [x]}}]")
		if got := r.limit("a"); got != want {
			t.Errorf("limit with concurrency %s = %d; want %d", own, got, want)
		}
	}
}
