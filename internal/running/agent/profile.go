package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
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

// A recipe holds what mailboxd knows of the program of a profile.
type recipe struct {
	title   string   // the name of the program, for people
	command []string // a program and its fixed arguments; none: the binding has all
	model   string   // its flag for a model; "" for none
	stdin   Stdin
	output  Format

	permission func(grant) []string           // flags with their values, for every run; nil: none
	terms      func(grant, task.Job) []string // the arguments for one run; nil: none
	rules      func(grant, task.Job) *rules   // for one run; nil: none, as the function may return
	servers    func(token string) string      // the text of serversFile, for a run with a tool broker; nil: none
	brokerEnv  func(token string) []string    // the variables of a run with a tool broker, as NAME=value; nil: none
	holds      func(tools []string) bool      // whether the terms hold the program to a list; nil: to any

	tools      toolGroups // what our names of tools mean; nil: it can't be told which tools it may use
	others     []string   // its tools that are in no group
	ownSandbox bool       // it runs commands in a sandbox of its own
	host       *acpHost   // runs the program; nil: it is the command of the run

	tested string   // the version that tests ran; "" for none
	events []string // the kinds of events that it is known to print
	login  *login   // nil: unknown

	variables []string // of the environment, which have its login and the address of its provider
}

// rules are what a program reads of its permissions besides its arguments.
type rules struct {
	name string // of a file in the run directory, which the run keeps
	text string
	env  string // the variable that has the text, too; "" for none

	add func(own, text string) (string, error) // adds the text to a variable that the binding sets; nil: replaces it
}

// addTo returns the value of the variable of the rules in an environment.
func (r *rules) addTo(env []string) (string, error) {
	for _, entry := range env {
		own, set := strings.CutPrefix(entry, r.env+"=")
		if !set || own == "" || r.add == nil {
			continue
		}
		text, err := r.add(own, r.text)
		if err != nil {
			return "", fmt.Errorf("%s in exec.env: %w", r.env, err)
		}
		return text, nil
	}
	return r.text, nil
}

var recipes = map[Profile]recipe{
	Claude:   claudeRecipe,
	Codex:    codexRecipe,
	Cursor:   cursorRecipe,
	Gemini:   geminiRecipe,
	OpenCode: openCodeRecipe,

	ClaudeACP: claudeACPRecipe, CodexACP: codexACPRecipe, GeminiACP: geminiACPRecipe, OpenCodeACP: openCodeACPRecipe,

	ACP: {stdin: Prompt, output: ACP, host: &acpHost{}, events: []string{"result"}},

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

// HasPermissions reports whether the program of the profile can be told a Permission, and which
// tools it may use.
func (p Profile) HasPermissions() bool { return recipes[p].tools != nil }

// Filled returns the binding with the defaults of its profile. A command of one word
// replaces the path of the program; a longer one is the binding's own, and gets no
// arguments. Filling twice changes nothing.
func (b Binding) Filled() Binding {
	if b.Service != nil {
		b.Output, b.Stdin = formatOf(*b.Service), Request
	}
	r, known := recipes[b.Profile]
	if !known || b.Worker != nil || b.Inbox != nil {
		return b
	}
	setDefault(&b.Output, r.output)
	setDefault(&b.Stdin, r.stdin)
	switch {
	case len(r.command) == 0:
	case len(b.Command) == 0:
		b.Command = slices.Concat(r.command[:1], r.arguments(b))
	case len(b.Command) == 1:
		b.Command = slices.Concat(b.Command, r.arguments(b))
	}
	return b
}

// arguments returns the program's arguments for every run. A flag of the permission replaces
// the same flag of the command.
func (r recipe) arguments(b Binding) []string {
	all := slices.Clone(r.command[1:])
	if r.permission != nil {
		for flag := range slices.Chunk(r.permission(b.grantFor(nil)), 2) {
			if at := slices.Index(all, flag[0]); at >= 0 {
				all[at+1] = flag[1]
				continue
			}
			all = append(all, flag...)
		}
	}
	if b.Model != "" {
		all = append(all, r.model, b.Model)
	}
	return all
}

// terms returns the function for the arguments of one run: nil if the command is the
// binding's own.
func (b Binding) terms() func(task.Job) []string {
	if r := recipes[b.Profile]; b.byRecipe() && r.terms != nil {
		return func(j task.Job) []string { return r.terms(b.grantFor(j.Tools), j) }
	}
	return nil
}

// rulesFor returns the rules of a run; nil for none.
func (b Binding) rulesFor(j task.Job) *rules {
	if r := recipes[b.Profile]; b.byRecipe() && r.rules != nil {
		return r.rules(b.grantFor(j.Tools), j)
	}
	return nil
}

// byRecipe reports whether the command of a filled binding is its profile's.
func (b Binding) byRecipe() bool {
	r := recipes[b.Profile]
	return b.Worker == nil && b.Inbox == nil && len(r.command) > 0 && len(b.Command) > 0 && slices.Equal(b.Command[1:], r.arguments(b))
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
	case b.Model != "" && recipes[b.Profile].model == "":
		return wrong("model", "the program of profile %s has no flag for it", b.Profile)
	case strings.HasPrefix(b.Model, "-"):
		return wrong("model", "%q would be read as a flag", b.Model)
	}
	return nil
}
