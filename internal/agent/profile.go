package agent

import (
	"maps"
	"slices"
	"strings"

	"mailboxd/internal/task"
)

// A Profile names a well-known program, and provides the defaults of a binding for it:
// command, Stdin and Output. The binding's own fields override them. "" provides none.
type Profile string

// Known programs. A Profile is how to run the program, a Format is its output. Its text
// becomes the summary, its session output.session_id.
const (
	Claude = "claude" // Claude Code: claude -p
	Codex  = "codex"  // codex exec; reports tokens, but no price
	Cursor = "cursor" // cursor-agent -p; reports tokens, but no price
	Gemini = "gemini" // Gemini CLI; reports tokens, but no price

	OpenCode = "opencode" // opencode run
)

// Profiles without a program: the binding names the command.
const (
	AINL  Profile = "ainl"  // an AINL program as the agent: reads the request, prints an object
	Shell Profile = "shell" // a script: reads the request, prints text

	ClutchWorker Profile = "clutch-worker" // reads {dispatch, context}, prints {taskId, success, output, error, usage}
)

// A recipe holds the defaults of a profile.
type recipe struct {
	command []string // a program and its fixed arguments; none: the binding has all
	model   string   // its flag for a model; "" for none
	stdin   Stdin
	output  Format
	terms   func(task.Job) []string // the arguments for one run; nil: none
	tools   bool                    // the terms enforce Job.Tools, also an empty list

	allow func(b Binding, j task.Job, tools []string) string // what to change so that the tools are allowed; nil: nobody knows

	variables []string // of the environment, which have its login and the address of its provider
}

var recipes = map[Profile]recipe{
	Claude:   claudeRecipe,
	Codex:    codexRecipe,
	Cursor:   cursorRecipe,
	Gemini:   geminiRecipe,
	OpenCode: openCodeRecipe,

	AINL:  {stdin: Request, output: JSON},
	Shell: {stdin: Request, output: Text},

	ClutchWorker: {stdin: Dispatch, output: Dispatched},
}

// Profiles returns the names of all profiles.
func Profiles() (names []string) {
	for _, p := range slices.Sorted(maps.Keys(recipes)) {
		names = append(names, string(p))
	}
	return names
}

// Variables returns the names of the environment variables in which the program of the
// profile documents its login, its settings, and the address of its provider.
func (p Profile) Variables() []string { return slices.Clone(recipes[p].variables) }

// LimitsTools reports whether the program of the profile is told which tools it may use.
func (p Profile) LimitsTools() bool { return recipes[p].tools }

// Filled returns the binding with the defaults of its profile. A command of one word
// replaces the path of the program; a longer one is the binding's own, and gets no
// arguments. Filling twice changes nothing.
func (b Binding) Filled() Binding {
	r, known := recipes[b.Profile]
	if !known || b.Worker != nil || b.Inbox != nil {
		return b
	}
	setDefault(&b.Output, r.output)
	setDefault(&b.Stdin, r.stdin)
	switch {
	case len(r.command) == 0:
	case len(b.Command) == 0:
		b.Command = slices.Concat(r.command[:1], r.arguments(b.Model))
	case len(b.Command) == 1:
		b.Command = slices.Concat(b.Command, r.arguments(b.Model))
	}
	return b
}

// arguments returns the program's arguments for every run.
func (r recipe) arguments(model string) []string {
	notified := slices.Clone(r.command[1:])
	if model != "" {
		notified = append(notified, r.model, model)
	}
	return notified
}

// terms returns the function for the arguments of one run: nil if the command is the
// binding's own.
func (b Binding) terms() func(task.Job) []string {
	if b.byRecipe() {
		return recipes[b.Profile].terms
	}
	return nil
}

// byRecipe reports whether the command of a filled binding is its profile's.
func (b Binding) byRecipe() bool {
	r := recipes[b.Profile]
	return b.Worker == nil && b.Inbox == nil && len(r.command) > 0 && len(b.Command) > 0 && slices.Equal(b.Command[1:], r.arguments(b.Model))
}

func (b Binding) checkProfile() *FieldError {
	_, known := recipes[b.Profile]
	switch {
	case b.Profile != "" && !known:
		return wrong("profile", "%q is not one of %s", b.Profile, strings.Join(Profiles(), ", "))
	case b.Profile != "" && (b.Worker != nil || b.Inbox != nil):
		return wrong("profile", "is for an exec agent, not for a worker or an inbox")
	case b.Model != "" && !b.byRecipe():
		return wrong("model", "only the command of a profile has a flag for it; name it in exec.command")
	case strings.HasPrefix(b.Model, "-"):
		return wrong("model", "%q would be read as a flag", b.Model)
	}
	return nil
}
