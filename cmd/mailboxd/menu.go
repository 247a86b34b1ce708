package main

import (
	"slices"
	"strings"

	"mailboxd/internal/exit"

	"github.com/spf13/cobra"
)

// The menu is in what order somebody meets the commands: what begins, what
// looks, what decides. What is in no group comes last.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"To begin", []string{"demo", "init", "serve", "service", "doctor"}},
	{"Tasks", []string{"send", "wait", "result", "ps", "show", "logs", "events", "thread", "trace"}},
	{"What people say", []string{"approve", "deny", "hold", "release", "cancel", "retry", "reply"}},
	{"Agents", []string{"agents", "budget", "pause", "resume", "drain", "mcp", "prompt"}},
	{"House", []string{"config", "lint", "gc", "completion", "version", "help"}},
}

// suggestions are words that people try first, by the command that they mean.
var suggestions = map[string][]string{
	"ps": {"list", "ls", "status", "tasks", "queue"}, "serve": {"start", "run", "daemon"}, "send": {"submit", "add", "task"},
	"cancel": {"kill", "stop", "rm", "abort"}, "deny": {"reject", "refuse"}, "show": {"describe", "inspect", "why"},
	"config": {"reload", "set", "get"}, "doctor": {"check", "health", "diagnose"}, "logs": {"log", "tail"},
	"thread": {"conversation", "timeline", "chat"}, "reply": {"answer", "say", "message"},
}

func init() { cobra.EnableCommandSorting = false } // the menu has an order of its own

// groupCommands puts the commands of cmd into the menu.
func groupCommands(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2 // letters that somebody may have got wrong
	var sorted []*cobra.Command
	for _, group := range commandGroups {
		cmd.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, name := range group.commands {
			for _, sub := range cmd.Commands() {
				if sub.Name() == name {
					sub.GroupID, sub.SuggestFor = group.title, suggestions[name]
					sorted = append(sorted, sub)
				}
			}
		}
	}
	for _, sub := range cmd.Commands() {
		if !slices.Contains(sorted, sub) {
			sorted = append(sorted, sub)
		}
	}
	cmd.RemoveCommand(cmd.Commands()...)
	cmd.AddCommand(sorted...)
	cmd.SetHelpCommandGroupID("House")
}

// requireCommand refuses what is no command, and names what it may have been.
func requireCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		return exit.With(exit.Usage, "no command %q; perhaps %s", args[0], strings.Join(meant, " or "))
	}
	return cobra.NoArgs(cmd, args)
}
