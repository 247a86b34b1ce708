package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
)

// commandGroups are the groups of the help, in order. Other commands come last.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Start here", []string{"demo", "init", "serve", "service", "doctor"}},
	{"Tasks", []string{"ask", "send", "again", "edit", "wait", "result", "ps", "web", "show", "logs", "diff", "events", "thread", "trace", "replay"}},
	{"Decisions", []string{"approve", "deny", "apply", "discard", "hold", "release", "cancel", "retry", "reply"}},
	{"Agents", []string{"agents", "route", "budget", "stats", "pause", "resume", "drain", "runners", "mcp", "gateway", "runner", "prompt"}},
	{"Maintenance", []string{
		"config", "reload", "lint", "schema", "gc", "backup", "restore", "move", "audit", "keys", "export", "verify", "artifact",
		"completion", "man", "version", "help",
	}},
}

// suggestions are words that people try, by the command that they mean.
var suggestions = map[string][]string{
	"ps": {"list", "ls", "status", "tasks", "queue"}, "serve": {"start", "run", "daemon"}, "send": {"submit", "add", "task"},
	"cancel": {"kill", "stop", "rm", "abort"}, "deny": {"reject", "refuse"}, "show": {"describe", "inspect", "why"},
	"config": {"set", "get"}, "doctor": {"check", "health", "diagnose"}, "logs": {"log", "tail"},
	"thread": {"conversation", "timeline", "chat"}, "reply": {"answer", "say", "message"},
}

func init() { cobra.EnableCommandSorting = false } // groups have their own order

// groupCommands sorts the commands of cmd into groups.
func groupCommands(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2 // wrong letters
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
	cmd.SetHelpCommandGroupID("Maintenance")
	setHelp(cmd)
}

// requireCommand refuses an unknown command, and suggests similar ones.
func requireCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		return exit.With(exit.Usage, "no command %q; did you mean %s?", args[0], strings.Join(meant, " or "))
	}
	return cobra.NoArgs(cmd, args)
}
