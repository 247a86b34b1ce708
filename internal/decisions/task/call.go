package task

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Call is one use of a tool: one that an agent asks for, or one that it made without asking.
type Call struct {
	ID      string         `json:"id"`
	Kind    CallKind       `json:"kind,omitzero"` // "": the agent didn't say
	Title   string         `json:"title,omitzero"`
	Command string         `json:"command,omitzero"` // "": none, or the agent didn't say
	Paths   []string       `json:"paths,omitzero"`   // in the directory of the run and relative to it, links resolved
	Outside []string       `json:"outside,omitzero"` // the other paths, absolute
	Diff    string         `json:"diff,omitzero"`    // what an edit changes; "": unknown
	Raw     jsontext.Value `json:"raw,omitzero"`     // the input as the agent gives it to its tool; nil: unknown
	MCP     string         `json:"mcp,omitzero"`     // the tool as server/tool; only the tool broker sets it
	Changed string         `json:"changed,omitzero"` // the definition of that tool, if it isn't the one that was used before
}

// A CallKind is what a call does, in the words of the Agent Client Protocol.
type CallKind string

// The kinds that a rule may name.
const (
	CallRead    CallKind = "read"
	CallSearch  CallKind = "search"
	CallEdit    CallKind = "edit"
	CallDelete  CallKind = "delete"
	CallMove    CallKind = "move"
	CallExecute CallKind = "execute"
	CallFetch   CallKind = "fetch"
	CallThink   CallKind = "think"
	CallOther   CallKind = "other"
)

// CallSwitchMode is a change of the agent's mode, after which it may ask no more.
const CallSwitchMode CallKind = "switch_mode"

// CallKinds returns the kinds that a rule may name.
func CallKinds() []CallKind {
	return []CallKind{CallRead, CallSearch, CallEdit, CallDelete, CallMove, CallExecute, CallFetch, CallThink, CallOther}
}

// Tool returns the name that lists of tools have for a kind of calls; "" if they have none.
func (k CallKind) Tool() string {
	switch k {
	case CallRead, CallSearch:
		return "read"
	case CallEdit, CallDelete, CallMove:
		return "edit"
	case CallExecute:
		return "command"
	case CallFetch:
		return "web"
	}
	return ""
}

// A CallAnswer is what becomes of a call. The zero value is none.
type CallAnswer string

// The answers.
const (
	AllowCall  CallAnswer = "allow"
	RejectCall CallAnswer = "reject"
	AskPerson  CallAnswer = "ask" // a person decides
)

// CallRules say which calls of an agent are allowed. The first rule that matches decides.
type CallRules struct {
	Rules     []CallRule    `json:"rules,omitzero"`
	Otherwise CallAnswer    `json:"otherwise"`                    // if no rule matches; "" is RejectCall
	Timeout   time.Duration `json:"timeout,omitzero,format:nano"` // for the decision of a person, then RejectCall; 0: none
}

// A CallRule decides some calls of one kind. Without Paths and Command, it decides all of them. A rule
// with MCP decides calls of tools of MCP servers, and no other ones.
type CallRule struct {
	Kind    CallKind   `json:"kind,omitzero"`
	MCP     string     `json:"mcp,omitzero"`     // server/tool, the tool as a pattern of path.Match
	Paths   []string   `json:"paths,omitzero"`   // patterns of path.Match for each element, and ** for any number of them
	Command string     `json:"command,omitzero"` // compared word by word; * is one word
	Do      CallAnswer `json:"do"`
}

// Words says in short what a call does: its command, its paths or its title.
func (c Call) Words() string {
	return cmp.Or(c.Command, strings.Join(slices.Concat(c.Paths, c.Outside), ", "), c.Title)
}

// A CallDecision is what becomes of a call. The zero value is none yet.
type CallDecision struct {
	Answer CallAnswer // AllowCall or RejectCall; "": none yet
	By     string     // the name of the person; "": a rule
	Reason string
}
