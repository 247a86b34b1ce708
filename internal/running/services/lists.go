package services

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// Named returns the servers that a list of tools names, as mcp:SERVER/TOOL.
func Named(servers []Server, tools []string) (named []Server) {
	for _, s := range servers {
		if slices.ContainsFunc(tools, func(entry string) bool { id, _ := policy.MCPServer(entry); return id == s.ID }) {
			s.Command = slices.Clone(s.Command)
			named = append(named, s)
		}
	}
	return named
}

// Missing returns the tools of a server that a list of tools names, as mcp:SERVER/TOOL, and the server
// doesn't have.
func Missing(server string, list, has []string) (missing []string) {
	for _, entry := range list {
		if id, tool := policy.MCPServer(entry); id == server && tool != "*" && !slices.Contains(has, tool) {
			missing = append(missing, tool)
		}
	}
	return missing
}

// CheckTools refuses entries of a list of tools, and patterns of rules, that name a tool of no server. An
// entry without a tool, such as mcp:browser, may be a name of the agent's own.
func CheckTools(servers map[string]bool, tools []string, rules *task.CallRules) (found []Problem) {
	note := func(server, key, format string, args ...any) {
		if format == "" && !servers[server] {
			format, args = "no server %q is in the section tools", []any{server}
		}
		if format != "" {
			found = append(found, Problem{key, fmt.Sprintf(format, args...)})
		}
	}
	for i, entry := range tools {
		server, tool := policy.MCPServer(entry)
		switch key := fmt.Sprintf("tools[%d]", i); {
		case server == "" || tool == "" && !strings.Contains(entry, "/"):
		case tool == "" || tool != "*" && strings.ContainsAny(tool, "*?[/"):
			note(server, key, "%q is neither mcp:SERVER/TOOL nor mcp:SERVER/*", entry)
		default:
			note(server, key, "")
		}
	}
	if rules == nil {
		return found
	}
	for i, r := range rules.Rules {
		server, tool, _ := strings.Cut(r.MCP, "/")
		_, err := path.Match(tool, "")
		switch key := fmt.Sprintf("acp.rules[%d].mcp", i); {
		case r.MCP == "":
		case r.Kind != "" || r.Command != "" || len(r.Paths) > 0:
			note(server, key, "a rule has mcp, or kind with paths and command")
		case tool == "" || err != nil || strings.Contains(tool, "/"):
			note(server, key, "%q is not a pattern such as github/create_*", r.MCP)
		default:
			note(server, key, "")
		}
	}
	return found
}
