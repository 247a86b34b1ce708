package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/running/services"
)

// An Entry is one entry of the section agents.
type Entry struct {
	ID             string         `mapstructure:"id"`
	Dialect        string         `mapstructure:"dialect"`
	Definition     string         `mapstructure:"definition"`
	Replicas       int            `mapstructure:"replicas"`
	Manifest       string         `mapstructure:"manifest"`
	Card           string         `mapstructure:"card"`
	Profile        string         `mapstructure:"profile"`
	Permission     string         `mapstructure:"permission"`
	Model          string         `mapstructure:"model"`
	Exec           Exec           `mapstructure:"exec"`
	Worker         Worker         `mapstructure:"worker"`
	HTTP           *services.HTTP `mapstructure:"http"`   // nil: it is no HTTP service
	A2A            *services.A2A  `mapstructure:"a2a"`    // nil: it is no agent of A2A
	MCP            *MCP           `mapstructure:"mcp"`    // nil: it is no tool of an MCP server
	Remote         *RemoteAgent   `mapstructure:"remote"` // nil: it runs on this machine
	Worktree       bool           `mapstructure:"worktree"`
	Inbox          *Inbox         `mapstructure:"inbox"`   // nil: the agent is run
	Sandbox        *Sandbox       `mapstructure:"sandbox"` // nil: none
	ACP            *ACP           `mapstructure:"acp"`     // nil: it doesn't ask about calls
	Timeout        time.Duration  `mapstructure:"timeout"`
	IdleTimeout    time.Duration  `mapstructure:"idle_timeout"`
	ExitTimeout    time.Duration  `mapstructure:"exit_timeout"`
	Concurrency    int            `mapstructure:"concurrency"`
	Retries        int            `mapstructure:"retries"`
	Backoff        time.Duration  `mapstructure:"backoff"`
	Idempotent     bool           `mapstructure:"idempotent"`
	OnError        []ErrorRule    `mapstructure:"on_error"`
	Resend         string         `mapstructure:"resend"`
	AllowUnmetered bool           `mapstructure:"allow_unmetered"`

	TaskTypes       []string `mapstructure:"task_types"`
	Tools           []string `mapstructure:"tools"` // nil: no grant of ours narrows them
	MaxSensitivity  string   `mapstructure:"max_sensitivity"`
	Environments    []string `mapstructure:"environments"`
	Refs            string   `mapstructure:"refs"`
	KillAtWindowEnd bool     `mapstructure:"kill_at_window_end"`

	index   int                 // where it stands among the entries
	replica string              // the id of the entry, of which this is a replica; "" for none
	defined *dialect.Definition // what definition says; nil: there is none
}

// Exec is how an agent is run as a process for each task.
type Exec struct {
	Command   []string  `mapstructure:"command"`
	Output    string    `mapstructure:"output"`
	Stdin     string    `mapstructure:"stdin"`
	Cwd       string    `mapstructure:"cwd"`
	Worktree  *Worktree `mapstructure:"worktree"` // nil: none
	Env       []string  `mapstructure:"env"`
	MaxOutput int64     `mapstructure:"max_output"`
	Workdirs  []string  `mapstructure:"workdirs"`
}

// Worker is how an agent is run as a process for many tasks.
type Worker struct {
	Command  []string `mapstructure:"command"`
	Count    int      `mapstructure:"count"`
	InFlight int      `mapstructure:"in_flight"`
	Cwd      string   `mapstructure:"cwd"`
	Env      []string `mapstructure:"env"`
}

// DefaultEntry has the defaults of an entry of agents.
func DefaultEntry() Entry {
	return Entry{
		Dialect:     "ainl",
		Exec:        Exec{Output: "envelope", Stdin: "request", MaxOutput: 64 << 20},
		Timeout:     10 * time.Minute,
		ExitTimeout: time.Minute,
		Worker:      Worker{Count: 1, InFlight: 1},
		Concurrency: 1,
		Backoff:     time.Second,
		Resend:      "rerun",

		MaxSensitivity: "internal",
		Refs:           "optional",
	}
}

// An Inbox is the inbox of an agent that fetches its tasks.
type Inbox struct {
	File  string        `mapstructure:"file"` // "": see findInbox
	Lease time.Duration `mapstructure:"lease"`
}

// inboxDefaults has the defaults of an inbox.
func inboxDefaults() Inbox { return Inbox{Lease: 10 * time.Minute} }

// fillInbox is a decoding hook like fillAgent for an inbox.
func fillInbox(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[Inbox]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(inboxDefaults()))
	}
	return from.Interface(), nil
}

// Route, as the agent of a reassignment, is the agent that routing chooses.
const Route = "route"

// An ErrorRule is what to do when a task of an agent fails (CAP-32).
type ErrorRule struct {
	Codes []string `mapstructure:"codes"` // of CAP or CLowl, or kinds: 504, E006, timeout
	Do    string   `mapstructure:"do"`
	To    string   `mapstructure:"to"`
}

func (r ErrorRule) check(key, id string) []error {
	checks := []error{choice(key+".do", r.Do)}
	if len(r.Codes) == 0 {
		checks = append(checks, wrong(key+".codes", "required, a list such as [504, E006, timeout]"))
	}
	for i, code := range r.Codes {
		if dialect.KindsOf(code) == nil {
			checks = append(checks, wrong(fmt.Sprintf("%s.codes[%d]", key, i), "%q is no code of CAP or CLowl, and no kind of error", code))
		}
	}
	switch {
	case r.Do == "reassign" && r.To == "":
		checks = append(checks, wrong(key+".to", "required, the agent that shall do it instead"))
	case r.Do == "reassign" && r.To == id:
		checks = append(checks, wrong(key+".to", "is the agent itself"))
	case r.Do == "retry" && r.To != "":
		checks = append(checks, wrong(key+".to", "is for reassign and escalate"))
	}
	return checks
}

// covers reports whether the rule is about a kind of error.
func (r ErrorRule) covers(kind envelope.Kind) bool {
	return slices.ContainsFunc(r.Codes, func(code string) bool { return slices.Contains(dialect.KindsOf(code), kind) })
}

// RuleFor returns the first rule about a kind of error.
func (e Entry) RuleFor(kind envelope.Kind) (ErrorRule, bool) {
	at := slices.IndexFunc(e.OnError, func(r ErrorRule) bool { return r.covers(kind) })
	if at < 0 {
		return ErrorRule{}, false
	}
	return e.OnError[at], true
}

// check refuses limits that policy cannot enforce. Package agent checks the rest.
func (e Entry) check(key string) []error {
	checks := []error{
		patterns(key+".task_types", e.TaskTypes),
		choice(key+".max_sensitivity", e.MaxSensitivity),
		choice(key+".refs", e.Refs),
	}
	for i, dir := range e.Exec.Workdirs {
		checks = append(checks, expanded(fmt.Sprintf("%s.exec.workdirs[%d]", key, i), dir))
	}
	for i, tool := range e.Tools {
		if tool == "" || strings.Contains(tool, ",") {
			checks = append(checks, wrong(fmt.Sprintf("%s.tools[%d]", key, i), "%q is not the name of one tool", tool))
		}
	}
	if e.ACP != nil {
		checks = append(checks, e.ACP.check(key+".acp")...)
		if e.Inbox != nil || len(e.Worker.Command) > 0 || e.HTTP != nil || e.A2A != nil || e.MCP != nil || e.Remote != nil {
			checks = append(checks, wrong(key+".acp", "is for exec agents only"))
		}
	}
	return slices.Concat(checks, e.checkService(key), e.checkRemote(key), e.checkDialogue(key))
}

// checkDialogue checks the replicas and the error rules.
func (e Entry) checkDialogue(key string) []error {
	var checks []error // the dialect is package agent's to check
	if e.Replicas > 0 && e.Inbox != nil && e.Inbox.File != "" {
		checks = append(checks, wrong(key+".inbox.file", "each of the replicas needs a file of its own; leave it empty"))
	}
	for i, rule := range e.OnError {
		checks = append(checks, rule.check(fmt.Sprintf("%s.on_error[%d]", key, i), e.ID)...)
	}
	return checks
}

// fillAgent is a decoding hook that starts an entry from its defaults, so a zero in the
// file means zero. Fields that a profile fills start empty.
func fillAgent(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[Entry]() && from.Kind() == reflect.Map {
		entry := DefaultEntry()
		fields, _ := from.Interface().(map[string]any)
		if fields["profile"] != nil && fields["profile"] != "" {
			entry.Exec.Output, entry.Exec.Stdin = "", ""
		}
		if fields["http"] != nil || fields["a2a"] != nil {
			entry.Retries = 2 // another attempt may still find the answer of the service
		}
		if fields["remote"] != nil {
			entry.Concurrency = 0 // the runners have their own limits
		}
		to.Set(reflect.ValueOf(entry))
	}
	return from.Interface(), nil
}
