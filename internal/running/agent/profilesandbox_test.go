package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mailboxd/internal/running/agent"
)

func TestTheDocumentationHasTheHostsThatProgramsDoWithout(t *testing.T) {
	var want strings.Builder
	for _, profile := range agent.Profiles() {
		if agent.Profile(profile).Asks() {
			continue // it needs what its program needs without a host
		}
		for _, host := range agent.SandboxNeedsOf(agent.Profile(profile)).Unneeded {
			fmt.Fprintf(&want, "| `%s` | `%s` | %s |\n", profile, host.Host, host.For)
		}
	}
	const path = "../../../docs/sandbox.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "| profile | host | for |\n|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("%s has no table with\n%s", path, want.String())
	}
}

func TestAnAgentInASandboxAsksForFewerHosts(t *testing.T) {
	for _, profile := range agent.Profiles() {
		for _, entry := range agent.SandboxNeedsOf(agent.Profile(profile)).Env {
			if name, value, found := strings.Cut(entry, "="); !found || name == "" || value == "" {
				t.Errorf("%s: %q sets no variable", profile, entry)
			}
		}
	}
}
