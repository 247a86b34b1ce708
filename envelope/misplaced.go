package envelope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// objectKinds are the messages that a sender may confuse with a request, each with its marks and
// its dialect. A request has a target_agent or a requester_id.
var objectKinds = []struct {
	name    string
	dialect Dialect
	has     func(*check) bool
}{
	{requestName, AINL, func(c *check) bool { return c.has("target_agent") || c.has("requester_id") }},
	{"an AgentTaskResult", AINL, func(c *check) bool { return c.has("task_id", "agent_id", "status") }},
	{"an AgentManifest", AINL, func(c *check) bool { return c.has("agent_id", "role_types") }},
	{"a CLowl message", CLowl, func(c *check) bool { return c.has("clowl") || c.has("cl") }},
	{"a Clutch message", Clutch, func(c *check) bool { return strings.HasPrefix(c.word(0, "v"), "clutch/") }},
	{"a CAP message", CAP, func(c *check) bool { return c.has("sender_id") && slices.Contains(capTypes, c.word(0, "type")) }},
	{"a CAP agent definition", "", func(c *check) bool { return c.has("id", "system_prompt") }},
}

const requestName = "an AgentTaskRequest"

var capTypes = []string{"message", "delegation_notice", "error_response", "oversight_inquiry"}

// misplaced refuses an object that is no request, by its name, and one with the marks of two
// kinds. A sender waits for an answer only if the object has the marks of a request: the
// task_id of a result, for example, belongs to another task.
func (r *request) misplaced() bool {
	var is []string
	for _, members := range objectKinds {
		if members.has(r.check) {
			is = append(is, members.name)
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

// MarkedAs returns the dialect whose marks an object has (mapping 2.1), valid or not. It
// returns AINL for an object with no marks, with those of several dialects, or with those of
// another kind of object: AINL's reader refuses that by its name.
func MarkedAs(object []byte) Dialect {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.parse(object) {
		return AINL
	}
	marked := Dialect("")
	for _, members := range objectKinds {
		switch {
		case !members.has(&c):
		case marked != "" || members.dialect == "":
			return AINL
		default:
			marked = members.dialect
		}
	}
	if marked == "" && c.has("sender_id", "recipient_id") {
		return CAP // of a type that CAP does not have
	}
	return cmp.Or(marked, AINL)
}

func (c *check) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c.find(0, name) == none })
}
