package agent

import (
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// The names of tools that mean the same for the program of each profile. A list may also have
// the program's own names.
const (
	ReadTools    = "read"    // find and read files
	EditTools    = "edit"    // write and change files
	CommandTools = "command" // run commands
	WebTools     = "web"     // search the web and read pages
)

// ToolNames returns the names of ours.
func ToolNames() []string { return []string{ReadTools, EditTools, CommandTools, WebTools} }

// toolGroups are the program's names of the tools that each of our names means.
type toolGroups map[string][]string

// of returns our name for a tool of the program; "" for a tool that is in no group. Claude
// Code's Bash(git *) is a part of Bash.
func (t toolGroups) of(tool string) string {
	tool, _, _ = strings.Cut(tool, "(")
	for group, names := range t {
		if tool == group || slices.Contains(names, tool) {
			return group
		}
	}
	return ""
}

// translate returns the program's names of tools, without duplicates.
func (t toolGroups) translate(tools []string) []string {
	var all []string
	for _, name := range tools {
		names, ours := t[name]
		if !ours {
			names = []string{name}
		}
		for _, n := range names {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// in returns the groups that the tools of a list are in.
func (t toolGroups) in(tools []string) map[string]bool {
	found := map[string]bool{}
	for _, name := range tools {
		found[t.of(name)] = true
	}
	return found
}

// UnknownToolText says that the program of the profile has no tool of a name.
func (p Profile) UnknownToolText(name string) string {
	return fmt.Sprintf("%s has no tool %q, so the name allows nothing; the names for every program are %s", recipes[p].title, name, strings.Join(ToolNames(), ", "))
}

// noteUnknownTools says which of the task's tools the program doesn't have.
func (g *Agent) noteUnknownTools(j task.Job, r *envelope.Result) {
	if g.binding.byRecipe() && r.Status != envelope.Rejected {
		for _, name := range g.binding.Profile.UnknownTools(j.Tools) {
			r.Review.Note(short(g.binding.Profile.UnknownToolText(name)))
		}
	}
}

// UnknownTools returns the names of a list that are neither ours nor those of the program of the
// profile: it can't be told to allow them. The tools of MCP servers are the program's.
func (p Profile) UnknownTools(tools []string) (unknown []string) {
	r := recipes[p]
	if r.tools == nil {
		return nil
	}
	for _, name := range tools {
		plain, _, _ := strings.Cut(name, "(")
		if r.tools.of(name) == "" && !slices.Contains(r.others, plain) && !strings.HasPrefix(name, "mcp_") && !strings.HasPrefix(name, "mcp:") {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
