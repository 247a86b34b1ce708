package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for bash, zsh or fish",
		Long: `Print a completion script for a shell. It completes commands, flags, task ids and
agents.`,
		Example: `  mailboxd completion bash \
      > ~/.local/share/bash-completion/completions/mailboxd
  mailboxd completion zsh > "${fpath[1]}/_mailboxd"
  mailboxd completion fish > ~/.config/fish/completions/mailboxd.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			}
			return root.GenFishCompletion(w, true)
		},
	}
}

// A completer lists words for a shell.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// maxCompletions limits the words for a shell.
const maxCompletions = 100

// completeArgs completes the arguments of commands, with tasks in a state that suits the
// command.
func completeArgs(g *globals, root *cobra.Command) {
	verbs := map[string]completer{
		"show":    completeTasks(g, true),
		"logs":    completeTasks(g, false, task.Running, task.Review, task.Done),
		"diff":    completeTasks(g, true, task.Review, task.Done),
		"apply":   completeTasks(g, true, task.Done),
		"discard": completeTasks(g, true, task.Done),
		"again":   completeTasks(g, false),
		"edit":    completeTasks(g, false, task.Received, task.Held, task.Queued),
		"result":  completeTasks(g, true, task.Done),
		"wait":    completeTasks(g, true, view.OpenStates()...),
		"approve": completeTasks(g, true, task.Held, task.Review),
		"deny":    completeTasks(g, true, task.Held, task.Review),
		"cancel":  completeTasks(g, true, view.OpenStates()...),
		"hold":    completeTasks(g, true, task.Received, task.Held, task.Queued),
		"release": completeTasks(g, true, task.Received, task.Held),
		"retry":   completeTasks(g, true, task.Done),
		"thread":  completeTasks(g, false),
		"trace":   completeTasks(g, false),
		"replay":  completeTasks(g, false),
		"export":  completeTasks(g, false),
		"reply":   completeTasks(g, false, view.OpenStates()...),
		"ask":     completeAgents(g),
		"pause":   completeAgents(g),
		"resume":  completeAgents(g),
		"drain":   completeAgents(g),
	}
	for _, verb := range []string{"explain", "replay"} {
		if cmd, _, err := root.Find([]string{"route", verb}); err == nil {
			cmd.ValidArgsFunction = completeTasks(g, false)
		}
	}
	for _, cmd := range root.Commands() {
		if answer := verbs[cmd.Name()]; answer != nil {
			cmd.ValidArgsFunction = answer
		}
	}
}

// completeTasks lists the newest tasks in some states, or in any. It lists nothing after
// an error.
func completeTasks(g *globals, many bool, states ...task.State) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words, err := taskWords(cmd.Context(), g, begun, states)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func taskWords(ctx context.Context, g *globals, begun string, states []task.State) ([]cobra.Completion, error) {
	cfg, err := g.partial(io.Discard)
	if err != nil {
		return nil, err
	}
	r, err := locationOf(cfg).Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tasks, err := r.Tasks(ctx, client.Filter{States: states, NewestFirst: true, Limit: 20 * maxCompletions})
	var words []cobra.Completion
	for _, t := range tasks {
		if strings.HasPrefix(string(t.ID), begun) && view.IsPlainID(t.ID) && len(words) < maxCompletions {
			words = append(words, cobra.CompletionWithDesc(string(t.ID), term.OneLine(view.StateOf(t)+", "+t.Agent)))
		}
	}
	return words, err
}

// completeAgents lists the agents of the configuration.
func completeAgents(g *globals) completer {
	return func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cfg, err := g.partial(io.Discard)
		var words []cobra.Completion
		for _, a := range cfg.Agents {
			if err == nil && strings.HasPrefix(a.ID, begun) {
				words = append(words, term.OneLine(a.ID))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeStates lists the states of tasks, also after a comma.
func completeStates(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := begun[:strings.LastIndex(begun, ",")+1]
	var words []cobra.Completion
	for _, s := range task.States() {
		words = append(words, before+string(s))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag completes the value of a flag.
func completeFlag(cmd *cobra.Command, flag string, answer completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, answer); err != nil {
		panic(err) // there is no such flag
	}
}
