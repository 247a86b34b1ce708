package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
)

// mcpPrefix begins the names of tools of MCP servers in lists: mcp:server/tool, or mcp:server/* and
// mcp:server for all of a server.
const mcpPrefix = "mcp:"

// covers reports whether an entry of a list of tools allows all that another one does.
func covers(entry, other string) bool {
	server, isServer := strings.CutSuffix(entry, "/*")
	if !strings.HasPrefix(entry, mcpPrefix) || !isServer && strings.Contains(entry, "/") {
		return entry == other
	}
	return other == server || strings.HasPrefix(other, server+"/")
}

// ListsTool reports whether a list of tools has a tool: by its name, or, of an MCP server, by a pattern.
func ListsTool(tools []string, name string) bool {
	return slices.ContainsFunc(tools, func(entry string) bool { return covers(entry, name) })
}

// ListsMCP reports whether a list has a tool of an MCP server, as server/tool. nil has none: such a tool
// has to be named.
func ListsMCP(tools []string, tool string) bool { return ListsTool(tools, mcpPrefix+tool) }

// MCPServer returns the server of an entry of a list of tools, and the tool, which is a pattern; "" for
// an entry that is no tool of an MCP server.
func MCPServer(entry string) (server, tool string) {
	rest, ok := strings.CutPrefix(entry, mcpPrefix)
	if !ok {
		return "", ""
	}
	server, tool, _ = strings.Cut(rest, "/")
	return server, tool
}

// decideMCP decides about a call of a tool of an MCP server, which mailboxd itself makes. Without rules,
// a tool that the operator's list has is allowed. A changed tool needs a person, whatever allows it.
func decideMCP(c task.Call, terms task.Terms) (answer task.CallAnswer, why string) {
	if !ListsMCP(terms.Tools, c.MCP) {
		return task.RejectCall, fmt.Sprintf("the task may use the tools %q only", terms.Tools)
	}
	answer, why = task.AllowCall, "the list of tools has it"
	if terms.Calls != nil {
		answer, why = decideByRules(c, *terms.Calls)
	}
	if c.Changed != "" && answer == task.AllowCall {
		return task.AskPerson, "the description or the schema of the tool has changed"
	}
	return answer, why
}

// matchesMCP reports whether a rule decides a call of a tool of an MCP server.
func matchesMCP(rule task.CallRule, tool string) bool {
	ok, err := path.Match(rule.MCP, tool)
	return ok && err == nil
}
