package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/task"
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
}

// A toolKind groups tools that do the same.
type toolKind string

const (
	edits    toolKind = "edit"
	commands toolKind = "command"
)

// toolKinds are the tools of known programs that change something. A tool that isn't here is
// a kind of its own.
var toolKinds = map[string]toolKind{
	"Write": edits, "Edit": edits, "MultiEdit": edits, "NotebookEdit": edits, "Bash": commands, // Claude Code:
	// https://code.claude.com/docs/en/settings#tools-available-to-claude
	"apply_patch": edits, "exec_command": commands, // Codex: codex-rs/core/src/tools
	"write_file": edits, "replace": edits, "run_shell_command": commands, // Gemini CLI: https://geminicli.com/docs/reference/tools
	"write": edits, "edit": edits, "patch": edits, "multiedit": edits, "bash": commands, // opencode: https://opencode.ai/docs/tools
}

func kindOf(tool string) toolKind {
	if kind, ok := toolKinds[tool]; ok {
		return kind
	}
	return toolKind(tool)
}

// A toolUse is a call whose result hasn't come.
type toolUse struct {
	tool  string
	input jsontext.Value
}

// toolUses are what a program reports of its calls. The zero value is ready.
type toolUses struct {
	pending   map[string]toolUse // by id
	failed    map[string]denial  // by id: calls with an error, of Claude Code
	succeeded map[toolKind]int   // the order of the last success
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
		u.succeeded = map[toolKind]int{}
	}
	u.order++
	u.succeeded[kindOf(tool)] = u.order
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
	return slices.DeleteFunc(slices.Clone(u.denied), func(d denial) bool { return u.succeeded[kindOf(d.Tool)] > d.order })
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
	if hint := recipes[g.binding.Profile].allow; hint != nil && g.binding.byRecipe() {
		reason += fmt.Sprintf("; to allow it, %s, and reload", hint(g.binding, j, names))
	}
	reply.result.Review.Ask(reason)
}
