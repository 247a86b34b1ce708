package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mailboxd/internal/task"
)

// A Profile names a program that many people have, and fills what a binding
// leaves out with how that one is asked: command, Stdin and Output. What the
// binding says itself wins. "" fills nothing.
type Profile string

// The programs we know. As a Profile, how one is asked; as a Format, what it
// prints. Its text becomes the summary, its session output.session_id.
const (
	Claude = "claude" // Claude Code: claude -p
	Codex  = "codex"  // codex exec; says its tokens, but no price
	Cursor = "cursor" // cursor-agent -p; says its tokens, but no price
	Gemini = "gemini" // Gemini CLI; says its tokens, but no price
)

// Profiles of no program in particular: the binding names the command.
const (
	AINL  Profile = "ainl"  // an AINL program as the agent: reads the request, prints an object
	Shell Profile = "shell" // a script: reads the request, prints text
)

// A recipe is what a profile knows.
type recipe struct {
	command []string // a program, and what it is always told; none: the binding names all
	model   string   // its flag for a model; "" when it has none
	stdin   Stdin
	output  Format
	terms   func(task.Job) []string // what else it is told about one run; nil: nothing
	tools   bool                    // the terms hold it to Job.Tools, an empty list included
}

var recipes = map[Profile]recipe{
	Claude: claudeRecipe,
	Codex:  codexRecipe,
	Cursor: cursorRecipe,
	Gemini: geminiRecipe,
	AINL:   {stdin: Request, output: JSON},
	Shell:  {stdin: Request, output: Text},
}

// Filled returns the binding with what its profile knows of what it leaves
// out. A command of one word is another place of the program; a longer one is
// the binding's own, and nothing is added to it. Filling twice changes nothing.
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
		b.Command = slices.Concat(r.command[:1], r.told(b.Model))
	case len(b.Command) == 1:
		b.Command = slices.Concat(b.Command, r.told(b.Model))
	}
	return b
}

// told is what the program is told in every run.
func (r recipe) told(model string) []string {
	told := slices.Clone(r.command[1:])
	if model != "" {
		told = append(told, r.model, model)
	}
	return told
}

// terms says what the program of a filled binding is told about one run: none
// when the command is the binding's own.
func (b Binding) terms() func(task.Job) []string {
	if b.byRecipe() {
		return recipes[b.Profile].terms
	}
	return nil
}

// byRecipe reports whether the command of a filled binding is its profile's.
func (b Binding) byRecipe() bool {
	r := recipes[b.Profile]
	return b.Worker == nil && b.Inbox == nil && len(r.command) > 0 && len(b.Command) > 0 && slices.Equal(b.Command[1:], r.told(b.Model))
}

func (b Binding) checkProfile() error {
	_, known := recipes[b.Profile]
	switch {
	case b.Profile != "" && !known:
		names := slices.Sorted(maps.Keys(recipes))
		return fmt.Errorf("profile: %q is not one of %s", b.Profile, strings.Trim(fmt.Sprint(names), "[]"))
	case b.Profile != "" && (b.Worker != nil || b.Inbox != nil):
		return errors.New("profile: is for an exec agent, not for a worker or an inbox")
	case b.Model != "" && !b.byRecipe():
		return errors.New("model: only the command of a profile has a flag for it; name it in exec.command")
	case strings.HasPrefix(b.Model, "-"):
		return fmt.Errorf("model: %q would be read as a flag", b.Model)
	}
	return nil
}
