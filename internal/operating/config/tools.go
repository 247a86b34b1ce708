package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"mailboxd/internal/running/services"
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
func checkTools(servers []services.Server, agents []Entry) (checks []error) {
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
			checks = append(checks, e.MCP.check(fmt.Sprintf("agents[%d].mcp", i), seen, e.HTTP != nil || e.A2A != nil)...)
		}
		for _, p := range services.CheckTools(seen, e.Tools, e.ACP.rules()) {
			checks = append(checks, wrong(fmt.Sprintf("agents[%d].%s", i, p.Key), "%s", p.Text))
		}
		checks = append(checks, e.checkNoBroker(fmt.Sprintf("agents[%d].tools", i), servers)...)
	}
	return checks
}

// checkNoBroker refuses tools of servers for an agent that has no run in which it could call them.
func (e Entry) checkNoBroker(key string, servers []services.Server) (checks []error) {
	if e.Inbox == nil && len(e.Worker.Command) == 0 {
		return nil
	}
	for i, entry := range e.Tools {
		if len(services.Named(servers, []string{entry})) > 0 {
			at := fmt.Sprintf("%s[%d]", key, i)
			checks = append(checks, wrong(at, "a worker or an inbox gets no tools of MCP servers: use exec, or remove %q", entry))
		}
	}
	return checks
}

// check refuses a call that can't be made.
func (m *MCP) check(key string, servers map[string]bool, other bool) (checks []error) {
	if other {
		checks = append(checks, wrong(key, severalServices))
	}
	if !servers[m.Server] {
		checks = append(checks, wrong(key+".server", "no server %q is in the section tools", m.Server))
	}
	for _, p := range services.CheckCall(m.Tool, string(m.Arguments)) {
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
