package main

import (
	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func threadCommand(g *globals) *cobra.Command {
	cmd := dialogueCommand(g, (*client.Client).Thread)
	cmd.Use = "thread ID"
	cmd.Short = "Print a conversation in English"
	cmd.Long = `Print the messages of a conversation in English, in any dialect, and what happened
to its tasks. ID is the name of a conversation, of a task in it, or of a trace.`
	cmd.Example = "  mailboxd thread T1\n  mailboxd thread T1 --json | jq '.messages[] | .from, .text'"
	return cmd
}

func traceCommand(g *globals) *cobra.Command {
	cmd := dialogueCommand(g, (*client.Client).Trace)
	cmd.Use = "trace ID"
	cmd.Short = "Print a chain of work over several conversations"
	cmd.Long = `Print the messages of a chain of work in English, over all its conversations. ID
is the name of a trace (CLowl's tid), or of a task or conversation in it. Without a
trace, the command prints the conversation, as mailboxd thread does.`
	cmd.Example = "  mailboxd trace t-2026-03\n  mailboxd trace t-2026-03 --json | jq .tasks"
	return cmd
}

// dialogueCommand makes a command that prints a conversation.
func dialogueCommand(g *globals, read reader.ReadDialogue) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			d, err := r.Dialogue(cmd.Context(), args[0], read)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), d)
			}
			return view.Timeline{Dialogue: d}.Print(term.ScreenOf(cmd.OutOrStdout()))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
