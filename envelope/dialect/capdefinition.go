package dialect

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Definition is CAP's description of an agent: its prompt, the agents that it may delegate
// to, its overseer and its tools (CAP-01 to CAP-07). It is checked as a whole: each allowed
// agent has its rule. A decoded Definition does not change and may be shared.
type Definition struct {
	ID            string            // the id of one agent, or, with replicas, the name of their group (CAP-22)
	SystemPrompt  string            // for the agent alone; never logged (CAP-02)
	AllowedAgents []string          // agents that it may delegate to (CAP-03)
	Rules         map[string]string // when to delegate, by agent, for people and models to read (CAP-20)
	Overseer      string            // the agent that reviews its answers; "" for none (CAP-05)
	Bindings      []MCPBinding      // tools of MCP servers that it may use (CAP-06)
	Extra         jsontext.Value    // unknown fields, an object; nil for none (CAP-07)
}

// An MCPBinding is the permission to use tools of one MCP server (CAP-06).
type MCPBinding struct {
	Server      string
	Description string
	Scopes      []string // opaque: recorded and passed on (CAP-26)
	Tools       []string
}

// Binds reports whether the agent may use a tool of a server (CAP-25).
func (d Definition) Binds(server, tool string) bool {
	return slices.ContainsFunc(d.Bindings, func(b MCPBinding) bool {
		return b.Server == server && slices.Contains(b.Tools, tool)
	})
}

// DecodeDefinition reads an agent definition. A wrong value of any field refuses it, because
// each field is a limit; the findings name the field.
func DecodeDefinition(raw []byte) (Definition, envelope.Findings) {
	raw = bytes.Trim(raw, space)
	if _, findings := envelope.ContentHash(raw); findings.Refused() {
		return Definition{}, findings
	}
	var findings envelope.Findings
	f := newFields(raw, "", &findings)
	d := Definition{
		ID:            f.name("id", f.required("id")),
		SystemPrompt:  f.prose("system_prompt", f.required("system_prompt")),
		AllowedAgents: f.names("allowed_agents", f.required("allowed_agents")),
		Rules:         f.rules(),
		Overseer:      f.name("overseer", f.member("overseer")),
		Bindings:      f.bindings(),
	}
	d.Extra = f.unknown()
	d.check(f)
	return d, findings
}

// rules reads delegate_rules. It also checks ids with a dot, which the pattern of CAP's schema
// leaves unchecked (CAP-04).
func (f fields) rules() map[string]string {
	const name = "delegate_rules"
	value := f.required(name)
	if value == nil {
		return nil
	}
	all := newFields(value, name+".", f.findings)
	rules := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(all.members)) {
		rule := newFields(all.members[id], name+"."+id+".", f.findings)
		if rule.members != nil {
			rules[id] = rule.prose("when_to_delegate", rule.required("when_to_delegate"))
		}
	}
	return rules
}

func (f fields) bindings() []MCPBinding {
	const name = "mcp_bindings"
	var bindings []MCPBinding
	for i, item := range f.list(name, f.required(name)) {
		b := newFields(item, indexed(name, i)+".", f.findings)
		if b.members == nil {
			continue
		}
		bindings = append(bindings, MCPBinding{
			Server:      b.name("server_id", b.required("server_id")),
			Description: b.prose("description", b.member("description")),
			Scopes:      b.names("scopes", b.required("scopes")),
			Tools:       b.names("allowed_tools", b.required("allowed_tools")),
		})
	}
	return bindings
}

// check compares the parts of a definition: an agent without a rule would never get work, and a
// rule without an agent is a mistake.
func (d Definition) check(f fields) {
	for i, id := range d.AllowedAgents {
		at := indexed("allowed_agents", i)
		_, ruled := d.Rules[id]
		switch {
		case id == "" || d.Rules == nil: // refused already
		case id == d.ID:
			f.refuse(at, "is the agent itself")
		case slices.Contains(d.AllowedAgents[:i], id):
			f.refuse(at, "is there already")
		case !ruled:
			f.refuse(at, "has no rule in delegate_rules")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.Rules)) {
		if !slices.Contains(d.AllowedAgents, id) {
			f.refuse("delegate_rules."+id, "is not in allowed_agents")
		}
	}
	if d.Overseer != "" && d.Overseer == d.ID {
		f.refuse("overseer", "is the agent itself")
	}
}
