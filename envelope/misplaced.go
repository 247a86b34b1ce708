package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// families are the messages that may be taken for one another, each with the
// marks it is known by. The request is known by asking somebody.
var families = []struct {
	name string
	has  func(*check) bool
}{
	{requestName, func(c *check) bool { return c.has("target_agent") || c.has("requester_id") }},
	{"an AgentTaskResult", func(c *check) bool { return c.has("task_id", "agent_id", "status") }},
	{"an AgentManifest", func(c *check) bool { return c.has("agent_id", "role_types") }},
	{"a CLowl message", func(c *check) bool { return c.has("clowl") || c.has("cl") }},
	{"a Clutch message", func(c *check) bool { return strings.HasPrefix(c.word(0, "v"), "clutch/") }},
	{"a CAP message", func(c *check) bool { return c.has("sender_id") && slices.Contains(capTypes, c.word(0, "type")) }},
	{"a CAP agent definition", func(c *check) bool { return c.has("id", "system_prompt") }},
}

const requestName = "an AgentTaskRequest"

var capTypes = []string{"message", "delegation_notice", "error_response", "oversight_inquiry"}

// misplaced refuses, by its name, what is not a request, and what is two
// things at once. Somebody waits for an answer only if a request is in it: the
// task_id of a result, say, is another's.
func (r *request) misplaced() bool {
	var is []string
	for _, family := range families {
		if family.has(r.check) {
			is = append(is, family.name)
		}
	}
	switch {
	case len(is) == 0, len(is) == 1 && is[0] == requestName:
		return false
	case len(is) == 1:
		r.note(InvalidEnvelope, "", fmt.Sprintf("is %s, not %s", is[0], requestName))
	default:
		r.note(InvalidEnvelope, "", "is ambiguous: "+strings.Join(is, " and ")+" at once")
		if slices.Contains(is, requestName) {
			r.salvage()
		}
	}
	return true
}

func (c *check) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c.find(0, name) == none })
}
