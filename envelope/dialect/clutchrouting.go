package dialect

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// routingMembers are the members of a decision of the router, in which each agent has the prefix
// of Clutch (section 4.3, CLUTCH-75).
func routingMembers(data jsontext.Value) map[string]jsontext.Value {
	p := map[string]jsontext.Value{}
	for name, value := range membersOf(data) {
		switch name {
		case "selected":
			value = agentName(value)
		case "candidates":
			value = eachItem(value, agentName)
		case "scores":
			value = byAgent(value, func(v jsontext.Value) jsontext.Value { return v })
		case "excluded":
			value = eachItem(value, func(v jsontext.Value) jsontext.Value { return withAgent(v, "agent") })
		case "inputs":
			value = byAgent(value, func(v jsontext.Value) jsontext.Value { return withAgent(v, "id") })
		}
		p[name] = value
	}
	return p
}

// agentName is the name of an agent with its prefix. Another value stays as it is.
func agentName(name jsontext.Value) jsontext.Value {
	if text, ok := textOf(name); ok && text != "" {
		return quoted(agentPrefix + text)
	}
	return name
}

// withAgent is an object in which a member is the name of an agent.
func withAgent(value jsontext.Value, member string) jsontext.Value {
	all := membersOf(value)
	if all[member] == nil {
		return value
	}
	all[member] = agentName(all[member])
	return object(all)
}

// byAgent is an object whose names are agents.
func byAgent(value jsontext.Value, each func(jsontext.Value) jsontext.Value) jsontext.Value {
	if value.Kind() != '{' {
		return value
	}
	all := map[string]jsontext.Value{}
	for name, v := range membersOf(value) {
		all[agentPrefix+name] = each(v)
	}
	return object(all)
}

// eachItem is a list whose items are changed.
func eachItem(value jsontext.Value, change func(jsontext.Value) jsontext.Value) jsontext.Value {
	var items []jsontext.Value
	if value.Kind() != '[' || !unmarshal(value, &items) {
		return value
	}
	items = slices.Clone(items)
	for i := range items {
		items[i] = change(items[i])
	}
	return array(items)
}
