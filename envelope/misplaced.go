package envelope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// families are the messages that may be taken for one another, each with the
// marks it is known by, and the dialect that it is a message of. The request is
// known by asking somebody.
var families = []struct {
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

// misplaced refuses, by its name, what is not a request, and what is two
// things at once. Somebody waits for an answer only if a request is in it: the
// task_id of a result, say, is another's.
func (r *request) misplaced() bool {
	var is []string
	for _, members := range families {
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

// MarkedAs returns the dialect of which an object bears the mark (mapping 2.1),
// valid or not. What bears none, several at once, or that of something else is
// AINL's to refuse by its name.
func MarkedAs(object []byte) Dialect {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.parse(object) {
		return AINL
	}
	marked := Dialect("")
	for _, members := range families {
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
