package agent

import (
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// A Permission says what the program of a profile may do in its directory. "" leaves it to the
// program's own settings.
type Permission string

// The permissions.
const (
	ReadOnly Permission = "read_only" // it reads; it changes no file and runs no command
	Edit     Permission = "edit"      // it changes files, and runs commands where a sandbox holds them
)

// Permissions returns the names of all permissions.
func Permissions() []string { return []string{string(ReadOnly), string(Edit)} }

// A grant is what the program of a profile is told that it may do in a run. The zero value
// tells it nothing.
type grant struct {
	permission Permission
	tools      []string // in our names and in those of the program; nil: not limited
	commands   bool     // with the permission Edit, it may run commands
	enclosed   bool     // every run is in bubblewrap: a program with a sandbox of its own needs none
	brokered   bool     // the run has a tool broker, which has its tools of MCP servers
}

// grantFor returns what a run with a list of tools may do: what the list has, as far as the
// permission allows it.
func (b Binding) grantFor(tools []string) grant {
	own, brokered := b.divideTools(tools)
	g := grant{permission: b.Permission, tools: own, commands: b.runsCommands(), enclosed: b.enclosed(), brokered: len(brokered) > 0}
	switch {
	case b.Permission == ReadOnly && tools == nil:
		g.tools = []string{ReadTools}
	case b.Permission != "" && tools != nil:
		groups := recipes[b.Profile].tools
		g.tools = slices.DeleteFunc(own, func(name string) bool { return !g.permits(groups.of(name)) })
	}
	return g
}

// permits reports whether the permission allows a group of tools.
func (g grant) permits(group string) bool {
	if g.permission == ReadOnly {
		return group == ReadTools || group == WebTools
	}
	return group != CommandTools || g.commands
}

// runsCommands reports whether runs may run commands: a sandbox holds them, or the operator's
// own list names them.
func (b Binding) runsCommands() bool {
	r := recipes[b.Profile]
	named := func(name string) bool { return r.tools.of(name) == CommandTools }
	return r.ownSandbox || b.contained() || slices.ContainsFunc(b.Tools, named)
}

// contained reports whether a sandbox of mailboxd holds every run.
func (b Binding) contained() bool { return b.Sandbox.Active() && b.Sandbox.Missing != sandbox.Open }

// enclosed reports whether every run is in a sandbox of bubblewrap: without one, no run starts.
func (b Binding) enclosed() bool {
	return b.Sandbox.Active() && (b.Sandbox.Missing == "" || b.Sandbox.Missing == sandbox.Refuse)
}

// leavesSandbox reports whether the program was told to make no sandbox of its own in a run, because
// it is in ours.
func (g *Agent) leavesSandbox(j task.Job) bool {
	r, own := recipes[g.binding.Profile], g.binding.grantFor(j.Tools)
	if !r.ownSandbox || !own.enclosed || g.runArguments == nil {
		return false
	}
	alone := own
	alone.enclosed = false
	return !slices.Equal(r.terms(own, j), r.terms(alone, j))
}

func (b Binding) checkPermission() *FieldError {
	switch {
	case b.Permission == "":
		return nil
	case !slices.Contains(Permissions(), string(b.Permission)):
		return wrong("permission", "%q is not one of %s", b.Permission, strings.Join(Permissions(), ", "))
	case recipes[b.Profile].tools == nil:
		return wrong("permission", "only the profiles %s have one", strings.Join(limitedProfiles(), ", "))
	case !b.byRecipe():
		return wrong("permission", "only the command of a profile has flags for it; name them in exec.command")
	}
	return nil
}

func limitedProfiles() []string {
	return slices.DeleteFunc(Profiles(), func(name string) bool { return recipes[Profile(name)].tools == nil })
}
