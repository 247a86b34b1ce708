package agent

import "mailboxd/internal/decisions/task"

// serversFile is the file of a run directory with the MCP servers of a program: the tool broker of the
// run alone. It has the token of the run, which no argument and no variable has.
const serversFile = "mcp.json"

// toolServer is the name of the tool broker for a program. It differs from mailboxd, the name with which
// people enter the mailbox in the settings of their agents.
const toolServer = "mailboxd-tools"

// writeServers writes the servers of a program that gets them by a file. Without a token there are none,
// as in the weaker sandbox, which has no network.
func writeServers(g *Agent, j task.Job, token string) error {
	r := recipes[g.binding.Profile]
	if _, brokered := g.binding.divideTools(j.Tools); len(brokered) == 0 || r.servers == nil || !g.binding.byRecipe() {
		return nil
	}
	return create(inDir(j, serversFile), []byte(r.servers(token)))
}
