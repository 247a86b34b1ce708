package config

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/running/external"
)

// MCP is the section of an agent that is a tool of an MCP server.
type MCP struct {
	Server    string    `mapstructure:"server"`
	Tool      string    `mapstructure:"tool"`
	Arguments Arguments `mapstructure:"arguments"`
}

// Arguments are a mapping in the file, and its JSON here: the names of its keys stay as they are
// written.
type Arguments string

// asArguments writes a mapping of arguments as JSON. The problem is why a value is none; "" for none.
func asArguments(n *yaml.Node, want reflect.Type) (problem string) {
	actual := target(n)
	if want != reflect.TypeFor[Arguments]() || isNull(actual) {
		return ""
	}
	var value map[string]any
	if actual.Kind != yaml.MappingNode || actual.Decode(&value) != nil {
		return `is a mapping of names to values, such as {question: "{{.Description}}"}`
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "is not JSON: " + err.Error()
	}
	*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(text), Line: n.Line, Column: n.Column}
	return ""
}

// checkTools refuses servers that can't be used, and agents that call no tool of one.
func checkTools(servers []external.Server, agents []Entry) (checks []error) {
	seen := map[string]bool{}
	for i, s := range servers {
		key := fmt.Sprintf("tools[%d]", i)
		if seen[s.ID] {
			checks = append(checks, wrong(key+".id", "%q is there twice", s.ID))
		}
		seen[s.ID] = true
		for _, p := range s.Check() {
			checks = append(checks, wrong(key+"."+p.Key, "%s", p.Text))
		}
	}
	for i, e := range agents {
		if e.MCP != nil {
			checks = append(checks, e.MCP.check(fmt.Sprintf("agents[%d].mcp", i), seen, e.HTTP != nil)...)
		}
		checks = append(checks, e.checkMCPTools(fmt.Sprintf("agents[%d]", i), seen)...)
	}
	return checks
}

// checkMCPTools refuses entries of the list of tools, and rules, that name a tool of no server. An entry
// without a tool, such as mcp:browser, may be a name of the agent's own.
func (e Entry) checkMCPTools(key string, servers map[string]bool) (checks []error) {
	for i, entry := range e.Tools {
		at := fmt.Sprintf("%s.tools[%d]", key, i)
		server, tool := policy.MCPServer(entry)
		switch {
		case server == "" || tool == "" && !strings.Contains(entry, "/"):
		case tool == "" || tool != "*" && strings.ContainsAny(tool, "*?[/"):
			checks = append(checks, wrong(at, "%q is neither mcp:SERVER/TOOL nor mcp:SERVER/*", entry))
		case !servers[server]:
			checks = append(checks, wrong(at, "no server %q is in the section tools", server))
		}
	}
	if e.ACP == nil {
		return checks
	}
	for i, r := range e.ACP.Rules {
		at := fmt.Sprintf("%s.acp.rules[%d].mcp", key, i)
		server, tool, _ := strings.Cut(r.MCP, "/")
		_, err := path.Match(tool, "")
		switch {
		case r.MCP == "":
		case tool == "" || err != nil || strings.Contains(tool, "/"):
			checks = append(checks, wrong(at, "%q is not a pattern such as github/create_*", r.MCP))
		case !servers[server]:
			checks = append(checks, wrong(at, "no server %q is in the section tools", server))
		}
	}
	return checks
}

// serversOf returns the servers that the list of tools of an entry names.
func (c *Config) serversOf(e Entry) (servers []external.Server) {
	for _, s := range c.Tools {
		named := func(entry string) bool { server, _ := policy.MCPServer(entry); return server == s.ID }
		if slices.ContainsFunc(e.Tools, named) {
			s.Command = slices.Clone(s.Command)
			c.resolveCommand(s.Command)
			servers = append(servers, s)
		}
	}
	return servers
}

// check refuses a call that can't be made.
func (m *MCP) check(key string, servers map[string]bool, other bool) (checks []error) {
	if other {
		checks = append(checks, wrong(key, "an agent has http or mcp, not both"))
	}
	if !servers[m.Server] {
		checks = append(checks, wrong(key+".server", "no server %q is in the section tools", m.Server))
	}
	for _, p := range external.CheckCall(m.Tool, string(m.Arguments)) {
		checks = append(checks, wrong(key+"."+p.Key, "%s", p.Text))
	}
	return checks
}

// checkServers looks for the programs and the variables of servers.
func (r *reading) checkServers() {
	for i, s := range r.config.Tools {
		key, command := fmt.Sprintf("tools[%d]", i), slices.Clone(s.Command)
		r.config.resolveCommand(command)
		r.add(Lacks, program(key+".command", command))
		r.add(Unset, unsetBearer(key, s.BearerEnv))
		r.add(Unset, unsetEnv(s.Env, key+".env[%d]", "server")...)
	}
}
