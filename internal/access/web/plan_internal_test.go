package web

import (
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestThePageSaysOfAPlanWhatTheTerminalSays(t *testing.T) {
	asked := client.Approval{Digest: "d1", Plan: &client.Plan{
		Format: client.PlanFormat, Command: []string{"tool"}, Executable: "/bin/tool", Setup: []string{"npm", "ci"},
		Permission: "edit files", Tools: []string{"fs"}, Env: map[string]string{"TOKEN": "x"}, Manifest: "m1",
		Sandbox: sandbox.Settings{Profile: sandbox.Workspace, Network: sandbox.Hosts{"api.example.com"}},
	}}
	facts := planOf(asked)
	lines := strings.Split(view.Question(asked), "\n")
	for _, line := range lines[1:] { // the first says who is asked
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		value = strings.TrimSpace(value)
		if !slices.ContainsFunc(facts, func(f fact) bool { return f.Value == value }) {
			t.Errorf("the terminal says %s: %q; the page has only %q", name, value, facts)
		}
	}
}
