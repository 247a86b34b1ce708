package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/operating/config"
)

// writeCard writes the card of an agent, and returns its path.
func writeCard(t *testing.T, id, rest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), id+".json")
	text := `{"v":"clutch/0.1","agent_id":"agent:` + id + `","capabilities":[{"id":"skill:x"}]` + rest + `}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadText(t *testing.T, yaml string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, "")
}

// CLUTCH-24, CLUTCH-26, CLUTCH-27: a card narrows the limits of its entry, and widens none.
func TestACardNarrowsTheLimitsOfItsAgent(t *testing.T) {
	card := writeCard(t, "a", `,"limits":{"max_concurrency":2,"max_runtime_sec":60,"max_tokens":500}`)
	for timeout, want := range map[string]time.Duration{"10m": time.Minute, "0s": time.Minute, "30s": 30 * time.Second} {
		cfg, err := loadText(t, "agents: [{id: a, card: "+card+", timeout: "+timeout+", exec: {command: [x]}}]")
		if err != nil {
			t.Fatal(err)
		}
		m := cfg.ReadAgents()[0]
		if m.Problem() != nil || m.Binding.Timeout != want || m.Subject.Card.Concurrency != 2 || *m.Subject.Card.Budget.Tokens != 500 {
			t.Errorf("timeout %s: %+v, problem %v; want a timeout of %v", timeout, m.Subject.Card, m.Problem(), want)
		}
	}
}

// CLUTCH-24: an agent whose card cannot be read gets no tasks, as with a manifest.
func TestAWrongCardDisablesItsAgent(t *testing.T) {
	for why, path := range map[string]string{
		`is for the agent "b"`:   writeCard(t, "b", ""),
		"limits.max_concurrency": writeCard(t, "a", `,"limits":{"max_concurrency":0}`),
		"no such file":           filepath.Join(t.TempDir(), "none.json"),
	} {
		cfg, err := loadText(t, "agents: [{id: a, card: "+path+", exec: {command: [x]}}]")
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.ReadAgents()[0].Problem(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("Problem = %v; want %q", err, why)
		}
	}
}

func TestAGroupHasTheReplicasOfItsEntries(t *testing.T) {
	cfg, err := loadText(t, "groups: [{name: g, agents: [r, a]}]\nagents: [{id: r, replicas: 2, exec: {command: [x]}}, {id: a, exec: {command: [x]}}, {id: b, exec: {command: [x]}}]")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"g": {"a", "r-1", "r-2"}}, cfg.GroupsByName()); diff != "" {
		t.Error(diff)
	}
	for _, row := range []struct{ yaml, want string }{
		{"groups: [{agents: [a]}]", "groups[0].name: required"},
		{"groups: [{name: g, agents: [a]}, {name: g, agents: [a]}]", `groups[1].name: "g" is there twice`},
		{"groups: [{name: g}]", "groups[0].agents: required"},
		{"groups: [{name: g, agents: [x]}]", `groups[0].agents[0]: no agent "x" is configured`},
		{"routing: {ainl: maybe}", "routing.ainl"},
		{"routing: {timeout: 0s}", "routing.timeout: must be more than 0s"},
	} {
		_, err := loadText(t, row.yaml+"\nagents: [{id: a, exec: {command: [x]}}]")
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want %q", row.yaml, err, row.want)
		}
	}
}

// CLUTCH-60, CLUTCH-62: only the sandbox of the configuration counts. A card is a claim.
func TestOnlyASandboxNarrowsTheNetworkOfAnAgent(t *testing.T) {
	restricted := writeCard(t, "a", `,"security":{"network":"egress-restricted"}`)
	claims := writeCard(t, "a", `,"security":{"network":"none","sandbox":true}`)
	for _, row := range []struct {
		entry     string
		sandboxed bool
		want      envelope.Network
	}{
		{"", false, envelope.NetworkAllowed},
		{"card: " + restricted + ", ", false, envelope.NetworkAllowed},
		{"card: " + claims + ", ", false, envelope.NetworkAllowed},
		{"card: " + claims + ", sandbox: {missing: none}, ", false, envelope.NetworkAllowed},
		{"card: " + claims + ", sandbox: {network: [example.com]}, ", true, envelope.NetworkRestricted},
		{"sandbox: {}, ", true, envelope.NetworkNone},
		{"card: " + restricted + ", sandbox: {}, ", true, envelope.NetworkNone},
		{"sandbox: {network: [example.com]}, ", true, envelope.NetworkRestricted},
		{"sandbox: {missing: none}, ", false, envelope.NetworkAllowed},
		{"sandbox: {profile: none}, ", false, envelope.NetworkAllowed},
	} {
		cfg, err := loadText(t, "agents: [{id: a, "+row.entry+"exec: {command: [x]}}]")
		if err != nil {
			t.Fatal(err)
		}
		m := cfg.ReadAgents()[0]
		if m.Problem() != nil || m.Sandboxed() != row.sandboxed || m.Network() != row.want {
			t.Errorf("%q: sandboxed %t, network %q, problem %v; want %t, %q", row.entry, m.Sandboxed(), m.Network(), m.Problem(), row.sandboxed, row.want)
		}
	}
}
