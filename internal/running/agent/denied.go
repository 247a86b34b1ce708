package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// Limits on what a run may list as denied.
const (
	maxDenied  = 20   // calls
	maxPending = 1000 // calls without a result so far
)

// A denial is a call of a tool that the program did not carry out, because its user's or
// mailboxd's permissions don't allow it. It comes from the program's own events, never from
// the words of a model.
type denial struct {
	Tool  string         `json:"tool"`           // the program's name of it
	Input jsontext.Value `json:"input,omitzero"` // nil: unknown
	Why   string         `json:"why"`
	order int            // among the results of calls
	group string         // of what the call did, if its tool doesn't say that
}

// groupOf returns our name for a tool of one of the known programs, or else its own name.
func groupOf(tool string) string {
	for _, r := range recipes {
		if group := r.tools.of(tool); group != "" {
			return group
		}
	}
	return tool
}

// isChange reports whether a tool of a known program changes something.
func isChange(tool string) bool { return groupOf(tool) == EditTools || groupOf(tool) == CommandTools }

// A toolUse is a call whose result hasn't come.
type toolUse struct {
	tool  string
	input jsontext.Value
}

// toolUses are what a program reports of its calls. The zero value is ready.
type toolUses struct {
	pending   map[string]toolUse // by id
	failed    map[string]denial  // by id: calls with an error, of Claude Code
	succeeded map[string]int     // the order of the last success, by group
	denied    []denial
	more      int // denied calls beyond maxDenied
	order     int
}

// call records a call.
func (u *toolUses) call(id, tool string, input jsontext.Value) {
	if u.pending == nil {
		u.pending = map[string]toolUse{}
	}
	if id != "" && len(u.pending) < maxPending {
		u.pending[id] = toolUse{tool, shortInput(input)}
	}
}

// take returns a call that has its result now.
func (u *toolUses) take(id string) toolUse {
	use := u.pending[id]
	delete(u.pending, id)
	u.order++
	return use
}

// succeed records that a call was carried out.
func (u *toolUses) succeed(tool string) {
	if u.succeeded == nil {
		u.succeeded = map[string]int{}
	}
	u.order++
	u.succeeded[groupOf(tool)] = u.order
}

// deny records a denied call.
func (u *toolUses) deny(d denial) {
	if len(u.denied) == maxDenied {
		u.more++
		return
	}
	d.Why = short(strings.TrimSpace(d.Why))
	u.denied = append(u.denied, d)
}

// open returns the denied calls after which no call of the same kind succeeded.
func (u *toolUses) open() []denial {
	return slices.DeleteFunc(slices.Clone(u.denied), func(d denial) bool { return u.succeeded[cmp.Or(d.group, groupOf(d.Tool))] > d.order })
}

// shortInput returns an input without the rest of long texts, such as that of a file.
func shortInput(input jsontext.Value) jsontext.Value {
	if input.Kind() != '{' {
		return nil
	}
	all := members(input)
	for name, value := range all {
		var text string
		if len(value) <= maxQuote {
			continue
		}
		if value.Kind() != '"' || json.Unmarshal(value, &text, lenient) != nil {
			text = string(value)
		}
		if quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(short(text), "\uFFFD")); err == nil {
			all[name] = quoted
		}
	}
	raw, err := json.Marshal(all, json.Deterministic(true))
	if err != nil || len(raw) > 8*maxQuote {
		return nil
	}
	return raw
}

// addDenied lists the denied calls in an answer, and asks for a review because of those that
// no later call made up for.
func (g *Agent) addDenied(j task.Job, reply *answer, u *toolUses) {
	if len(u.denied) == 0 {
		return
	}
	list, err := json.Marshal(u.denied, json.Deterministic(true))
	if err == nil {
		reply.result.Output.Extra = withMember(reply.result.Output.Extra, "denied", list)
	}
	open := u.open()
	if len(open) == 0 {
		return
	}
	var names []string
	for _, d := range open {
		if !slices.Contains(names, d.Tool) {
			names = append(names, d.Tool)
		}
	}
	reason := "the agent was not allowed to use " + strings.Join(names, ", ")
	if hint := g.binding.allow(j, names); hint != "" {
		reason += "; to allow it, " + hint + ", and reload"
	}
	reply.result.Review.Ask(reason)
}

// allow returns what to change in the configuration so that tools are allowed; "" if it is
// unknown.
func (b Binding) allow(j task.Job, tools []string) string {
	r := recipes[b.Profile]
	if r.tools == nil || !b.byRecipe() {
		return ""
	}
	var lines []string
	after := b
	if denied := r.tools.in(tools); b.Permission != Edit && (denied[EditTools] || denied[CommandTools]) {
		after.Permission = Edit
		lines = append(lines, "permission: "+string(Edit))
	}
	if after.Permission == Edit && b.Sandbox.Profile == sandbox.ReadOnly {
		lines = append(lines, "sandbox: {profile: "+string(sandbox.Workspace)+"}")
	}
	list, where := after.listWith(j.Tools, tools), ""
	if list != nil {
		lines = append(lines, "tools: ["+strings.Join(list, ", ")+"]")
		where = ", in its manifest and in the request where they name tools"
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("set %s of agent %q%s", strings.Join(lines, " and "), b.ID, where)
}

// listWith returns a list of tools with some more; nil if the permission allows those without a
// list.
func (b Binding) listWith(list, more []string) []string {
	groups := recipes[b.Profile].tools
	if list == nil {
		enough := func(tool string) bool {
			return b.Permission == Edit && (groups.of(tool) == EditTools || groups.of(tool) == CommandTools && b.runsCommands())
		}
		if !slices.ContainsFunc(more, func(tool string) bool { return !enough(tool) }) {
			return nil
		}
		if list = []string{ReadTools}; b.Permission == Edit {
			list = append(list, EditTools)
		}
	}
	all := slices.Clone(list)
	for _, tool := range more {
		if group := groups.of(tool); group != "" {
			tool = group
		}
		if !slices.Contains(all, tool) {
			all = append(all, tool)
		}
	}
	return all
}
