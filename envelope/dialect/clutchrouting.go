package dialect

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// routingMembers returns the members of a decision of the router. Each agent in them has the
// prefix of Clutch (section 4.3, CLUTCH-75).
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

// agentName returns the name of an agent with its prefix. Another value stays as it is.
func agentName(name jsontext.Value) jsontext.Value {
	if text, ok := textOf(name); ok && text != "" {
		return quoted(agentPrefix + text)
	}
	return name
}

// withAgent returns an object with the prefix added to the agent in a member.
func withAgent(value jsontext.Value, member string) jsontext.Value {
	all := membersOf(value)
	if all[member] == nil {
		return value
	}
	all[member] = agentName(all[member])
	return object(all)
}

// byAgent returns an object whose names are agents, with prefixes, and whose values each has
// changed.
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

// eachItem returns a list with each item changed.
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
