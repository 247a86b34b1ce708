package agent

import (
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

// serversFile is the file of a run directory with the MCP servers of a program: the tool broker of the
// run alone. It has the token of the run, which no argument and no variable has.
const serversFile = "mcp.json"

// withoutBroker has a program do without a tool broker, as in the weaker sandbox, which has no network.
func withoutBroker(s *runner.Spec, j task.Job, g *Agent) error {
	has := func(argument string) bool { return strings.Contains(argument, sandbox.ToolsReference) }
	if at := slices.IndexFunc(s.Argv, has); at > 0 && g.binding.byRecipe() {
		s.Argv = slices.Delete(s.Argv, at-1, at+1) // with its flag
	}
	return writeServers(g, j, "")
}

// writeServers writes the servers of a program that gets them by a file. Without a token there are none.
func writeServers(g *Agent, j task.Job, token string) error {
	r := recipes[g.binding.Profile]
	if _, brokered := g.binding.divideTools(j.Tools); len(brokered) == 0 || r.servers == nil || !g.binding.byRecipe() {
		return nil
	}
	return create(inDir(j, serversFile), []byte(r.servers(token)))
}
