package agent

import (
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// readTools are the tools of a program that neither write nor use the network. Other programs
// have no list: their tools are what each program calls them.
var readTools = map[Profile][]string{
	Claude: {"Read", "Glob", "Grep", "LS"}, // https://code.claude.com/docs/en/settings#tools-available-to-claude
}

// sandboxFor returns the sandbox of a run. A run whose allowed tools only read can't write,
// whatever its program does.
func (g *Agent) sandboxFor(j task.Job) sandbox.Settings {
	settings, known := g.binding.Sandbox, readTools[g.binding.Profile]
	if !settings.Active() || len(known) == 0 || j.Tools == nil || g.mode(envelope.ControlTools) != envelope.Enforce {
		return settings
	}
	for _, tool := range j.Tools {
		if !slices.Contains(known, tool) {
			return settings
		}
	}
	settings.Profile = sandbox.ReadOnly
	return settings
}
